"""The words of LifeStack, as tables: sentences about what happened. A task brings its names.

Text never enters states or params: `describe` turns their small integers into these.
"""

# What the last action came to, one sentence an outcome of `tables.OUTCOMES`.
OUTCOMES = {
    "none": "Nothing has been done yet.",
    "invalid": "The action was not legal: nothing was done, and a step passed.",
    "waited": "Nothing was done, and a step passed.",
    "rolled_back": "The action before was undone, and all that it paid was taken back.",
    "inspected": "{key} was inspected: it is {value}.",
    "progressed": "{action} was done: the route still takes {left}.",
    "completed": "{action} was done: the route is complete.",
    "closed": "{action} was blocked: an event has just closed the route.",
    "unknown": (
        "{action} was blocked by something that has not been inspected: the route is closed now."
    ),
    "precondition": "{action} was blocked: the route needs {unmet}.",
    "budget": "{action} was blocked: the route costs {cost:.7g}, and {money:.7g} is left.",
}
ABSENT = "absent"
UNSEEN = "something that is not visible to be otherwise"

# More sentences about a step, put together by `describe.outcome`.
REFUSED = "It was {why}."
NO_SUCH_ACTION = "{action}, which is no action"
EVENT = "Event {event}."
REACHED = "Milestone {milestone}."
LOST = "No longer reached: {milestones}."
REWARD = "Reward {reward:+.3f}."
SUCCESS = "Success: that was the end."
FAILURE = "Failure, since {why}: that was the end."
DEADLINE = "the deadline has passed"
UNSEEN_FAILURE = "something that is not visible came to be"
LAST_STEP = "That was the last step, without success."
ALREADY_OVER = "The episode was over already: nothing changed."

# Why an action is not legal.
ILLEGAL = {
    "no_route": "there is no such route",
    "completed": "the route {route} is completed already",
    "closed": "the route {route} is closed",
    "not_taken": "the route {route} takes no {type}",
    "used": "{type} was done already on the route {route}",
    "no_key": "there is no such key",
    "shown": "{key} is shown already",
    "nothing_to_undo": "the last action was none that can be undone",
    "rollback_used": "the one rollback of the episode is used up",
}

# What can be sent as an action, and what its fields can be.
FORM = (
    "a name (ROUTE:TYPE, inspect:KEY, wait or rollback), an index in [0, {count}), or a mapping "
    "of action_type, target and, if wanted, reasoning"
)
REASONING_LIMIT = 4_000  # characters
ALONE = ("wait", "rollback")  # types of actions that need no target
FIELDS = ("action_type", "target", "reasoning")
REASONING = f"text of at most {REASONING_LIMIT:,} characters"
WHEN_OVER = "all, for the episode is over and none changes anything"

# Of a task whose texts are not known.
GOAL = "Complete routes until all conditions of success hold."
TASK = "task"

TASK_LINE = "Task {task_id}: {goal}"
RESOURCES = """\
Steps taken {step_number}, left {steps_remaining}; {deadline}.
Money spent {money_spent:.7g}, {money}. Rewards so far {earned:.7g}."""
DEADLINES = (
    "there is no deadline",
    "steps to the deadline {deadline_in}",
    "the deadline has passed",
)
MONEY = ("there is no limit", "left {money_left:.7g}")
KNOWN = "Known: {known}."
NOTHING = "nothing"
CAN_INSPECT = "Not known, to be inspected: {keys}."
# The routes, one section a status.
SECTIONS = {"open": "Open routes:", "completed": "Completed routes:", "closed": "Closed routes:"}
# What is said of an open route, the fields that are not empty.
ROUTE = {
    "actions_left": "takes {}",
    "preconditions": "needs {}",
    "cost": "costs {}",
    "final_reward": "pays {}",
    "unlocks": "reaches {}",
    "closes": "closes {}",
}
MILESTONES = {False: "Milestones:", True: "Milestones reached:"}
MILESTONE = {"reward": "pays {}"}
EVENTS = "Events so far:"
ROLLBACK = "The last action can be rolled back."
LAST_ACTION = "Last action: {last_action_outcome}"
