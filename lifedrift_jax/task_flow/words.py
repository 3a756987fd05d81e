"""The words of TaskFlow, as tables: titles of items, sentences about what happened.

Text never enters states or params: `describe` turns their small integers into these.
"""

from lifedrift_jax.task_flow.tables import ACTION_TYPES, SLOTS

# Titles of items, one row a domain of `tables.DOMAINS`; `State.wording` says which. {level} is
# the urgency of an incident: the first of LEVELS, from each bound on its priority on the next.
TITLES = {
    "email_triage": (
        "Sort the overnight support inbox",
        "Answer a customer's renewal question",
        "Route a billing dispute to finance",
        "Clear the press inquiries of the launch",
        "Reply to a partner on contract terms",
        "Find the urgent ones among 200 unread messages",
        "Confirm a meeting with the regulator",
        "Hand an outage complaint to its owner",
    ),
    "code_review": (
        "Review the login rewrite",
        "Review a database migration",
        "Review the fix of a payment race",
        "Review the new rate limiter",
        "Review an upgrade of the web framework",
        "Review the cache invalidation patch",
        "Review a refactoring of the scheduler",
        "Review the public API of the client library",
    ),
    "incident_response": (
        "{level} incident: checkout returns errors",
        "{level} incident: search latency tripled",
        "{level} incident: a database replica lags",
        "{level} incident: mobile users cannot log in",
        "{level} incident: disks of the log cluster fill up",
        "{level} incident: webhooks are delivered twice",
        "{level} incident: a certificate is about to expire",
        "{level} incident: one region drops requests",
    ),
    "data_pipeline": (
        "Rerun the nightly sales load",
        "Repair the clickstream import",
        "Backfill three days of orders",
        "Add a column to the customer feed",
        "Unblock the stuck warehouse job",
        "Remove duplicates from the billing events",
        "Move the export to the new schema",
        "Validate the inventory feed of a supplier",
    ),
    "security_audit": (
        "Audit access rights of former staff",
        "Check the firewall rules of staging",
        "Rotate the keys of the payment service",
        "Follow up a penetration test",
        "Scan container images for known holes",
        "Audit the log of administrator actions",
        "Review the permissions of a vendor",
        "Check backups for unencrypted data",
    ),
    "compliance_check": (
        "GDPR: answer a request for erasure",
        "GDPR: review the record of processing",
        "HIPAA: check who read patient records",
        "HIPAA: renew a business associate agreement",
        "SOC2: collect evidence of change control",
        "SOC2: test the recovery plan",
        "PCI-DSS: scan the cardholder network",
        "PCI-DSS: prove that card numbers are masked",
    ),
    "model_retraining": (
        "Retrain the fraud detector",
        "Retrain the recommendation ranker",
        "Refresh the demand forecast",
        "Retrain the spam filter on new labels",
        "Tune the churn model again",
        "Retrain the document classifier",
        "Recalibrate the credit score",
        "Retrain the speech model on new accents",
    ),
}
LEVEL_BOUNDS = (0.5, 0.75)
LEVELS = ("P3", "P2", "P1")

# What the last action came to, one sentence an outcome of `tables.OUTCOMES`. {item} is its
# item: the slot and the title.
OUTCOMES = {
    "none": "Nothing has been done yet.",
    "invalid": "The action was not legal: nothing was done, and time passed.",
    "completed": "Item {item} was executed and is completed.",
    "failed": "Item {item} was executed and failed: it is lost, for a part of its reward.",
    "absent": "Item {item} was not executed, whoever it needs was absent: nothing was spent.",
    "too_late": "Item {item} was executed too late: it is lost, at full cost for no reward.",
    "deferred": "Item {item} was deferred, at a small penalty.",
    "delegated": "Item {item} was delegated, for a part of its reward.",
    "closed": "Item {item} was delegated too late: it is lost, for no reward.",
    "optimized": "Item {item} was optimized: its uncertainty was cut.",
}
ITEM = "{slot} ({title})"

# More sentences about a step, put together by `describe.outcome`.
EXPIRED = "Now late: {items}."
REWARD = "Reward {reward:+.3f}."
QUEUE_EMPTY = "The queue is empty: that was the end."
LAST_STEP = "That was the last step."
ALREADY_OVER = "The episode was over already: nothing changed."

# Why an action is not legal: by the status of its item, or else by the type of the action.
ILLEGAL = {
    "empty": "there is no item {slot}",
    "held": "item {item} is held, and not to be acted on until it returns",
    "late": "item {item} is late, and can only be executed or delegated",
    "delegated": "item {item} is delegated already",
    "completed": "item {item} is completed already",
    "failed": "item {item} is lost already",
    "execute": "item {item} takes {needs}, of which {left} are left",
    "optimize": "to optimize item {item} takes {needs}, of which {left} are left",
    "defer": "item {item} cannot be deferred, as no {domain} can",
}
COST = "{:.3f} energy and {:.3f} budget"

# What can be sent as an action, and what its fields can be.
FORM = (
    f"a name such as execute:3, an index in [0, {len(ACTION_TYPES) * SLOTS}), or a mapping of "
    "action_type, task_id and, if wanted, reasoning"
)
REASONING_LIMIT = 4_000  # characters
FIELDS = {
    "action_type": f"one of {', '.join(ACTION_TYPES)}",
    "task_id": f"an integer in [0, {SLOTS})",
    "reasoning": f"text of at most {REASONING_LIMIT:,} characters",
}

PARAGRAPH = (
    "Task {task_id}. {task_description} "
    "{step_number} of {max_steps} steps are taken, {time_remaining} are left. "
    "Energy {energy_remaining:.2f} of {full_energy:.2f}, "
    "budget {budget_remaining:.2f} of {full_budget:.2f}, system health {system_health:.2f}. "
    "Completed {tasks_completed}, failed {tasks_failed}, value so far {cumulative_value:.3f}."
)
REFUSED = "It was {why}."
NO_SUCH_ACTION = "{action}, which is no action"
LAST_ACTION = "Last action: {last_action_outcome}"
# The queue, one section a status.
SECTIONS = {
    "pending": "Pending:",
    "held": "Held, not to be acted on until they return:",
    "late": "Late, to be executed or delegated for no reward:",
}
LINE = (
    "- {task_id}: {title} ({domain}); priority {priority:.2f}, steps to deadline {deadline}, "
    "uncertainty {uncertainty:.2f}, value {value:.2f}, "
    "costs {energy_cost:.2f} energy and {budget_cost:.2f} budget"
)
NO_QUEUE = "The queue is empty."
