"""The words of Life Drift, as tables: the simulated user's behaviour, names of values.

Text never enters states or params: `describe` turns their small integers into these.
"""

# What the simulated user did, one row an action of `tables.ACTIONS` and one more for a
# request that was none of them. The row is chosen by the digit that `State.recent` keeps
# minus 1, the wording by the steps taken before, modulo the number of wordings. {goal}
# becomes FOR_GOAL or nothing.
BEHAVIOURS = {
    "suggest_task": (
        "took up the suggested task{goal}",
        "ticked a small item{goal} off the list",
        "began slowly, then finished the task{goal}",
        "set a timer and worked through the task{goal}",
    ),
    "prioritize_goal": (
        "cleared the desk and put in a solid hour{goal}",
        "turned an invitation down to keep time{goal}",
        "pushed everything else aside and worked hard{goal}",
        "took the hardest step{goal} first",
    ),
    "insert_break": (
        "went once around the block, away from the work{goal}",
        "lay down for a while, the phone in another room",
        "made tea and let the plans{goal} rest",
    ),
    "reschedule_task": (
        "moved the session{goal} to a calmer hour",
        "swapped two entries of the calendar to make room{goal}",
        "settled on a later, realistic slot{goal}",
    ),
    "reduce_difficulty": (
        "cut the task{goal} down to its easiest part",
        "chose a lighter version of the plan{goal}",
        "did one small piece{goal} and stopped there",
    ),
    "do_nothing": (
        "scrolled through the phone, no thought{goal}",
        "tidied a drawer instead of starting{goal}",
        "wandered from one tab to the next",
    ),
    "invalid_action": ("got a request that made no sense and waited",),
}
FOR_GOAL = " for {goal}"

# Observation fields that show a variable of `tables.VARIABLES`.
FIELDS = {
    "goal_alignment_score": "alignment",
    "drift_score": "drift",
    "energy_level": "energy",
    "fatigue": "fatigue",
    "focus_score": "focus",
}

# Words for a value in [0, 1]: the first, from each bound on the next.
LEVEL_BOUNDS = (0.2, 0.4, 0.6, 0.8)
LEVELS = ("very low", "low", "middling", "high", "very high")

PARAGRAPH = (
    "Task {task_id}. {task_description} "
    "{step_number} of {max_steps} steps are taken; it is {time_of_day}. "
    "The goals are {goals}. {levels}. Lately the user {recent_actions}. "
    "A step that takes fatigue above {threshold:.2f} sets off the burnout cascade."
)

# Sentences about a step, put together by `describe.outcome`.
CHANGED = "After {action}, {changes}."
UNCHANGED = "After {action}, little changed."
INVALID = "Action {action} is not legal: the user's state stayed as it was."
ALREADY_OVER = "The episode was over already: nothing changed."
CASCADE = "The burnout cascade struck."
REWARD = "Reward {reward:+.3f}."
FINISHED = "That was the last step."
