"""The built-in tasks of LifeStack as a table, of which `library` makes Tasks. Plain Python.

Steps and numbers of a row are those at its own difficulty, its budget that at difficulty 2.
A text that names several things has a space between them.
"""

from collections.abc import Mapping
from typing import NamedTuple

Values = Mapping[str, bool | str]
NOTHING: Values = {}


class Way(NamedTuple):
    """A route, and the milestone that waits for its flag."""

    types: str  # action types
    reward: float  # on completion
    milestone: float  # reward of the milestone
    serves: str = ""  # keys of success that it makes true
    closes: str = ""  # routes
    cost: int = 0  # money
    needs: Values = NOTHING  # preconditions
    sets: Values = NOTHING  # what it writes beside its flag and the keys of success
    flag: str = ""  # the key that it makes true; by default its id and "_done"


class Turn(NamedTuple):
    """An event."""

    step: int
    closes: str = ""  # routes
    world: Values = NOTHING  # what it writes
    hidden: Values = NOTHING


class Crisis(NamedTuple):
    """A task."""

    budget: int  # money
    length: int  # steps the best play takes where nothing is hidden, needed or scheduled
    success: str  # keys that must all be true
    routes: Mapping[str, Way]
    events: Mapping[str, Turn] = {}
    hidden: Mapping[str, Mapping[bool | str, int]] = {}  # key -> value -> weight
    world: Values = NOTHING  # other keys, beside flags and keys of success
    traps: Mapping[str, str] = {}  # decoy -> routes that it closes
    visible: str | None = None  # keys of the world; by default all
    spare: int = 3  # steps from `length` to the deadline
    late: int = 0  # steps from the deadline to the horizon
    decoys: int = 2


# In the order in which levels of difficulty add them.
DECOYS = {
    "ask_around": ("communicate", 0.1),  # action type, final reward
    "read_up": ("plan", 0.1),
    "tidy_up": ("execute", 0.1),
    "doze": ("rest", 0.1),
}

# fmt: off
TABLE = {
    "flight_crisis": Crisis(1000, 2, "flight_rebooked", {
        "rebook_premium": Way("communicate execute", 2.5, 1.0, closes="wait_lounge",
                              needs={"card_available": True}, flag="flight_rebooked"),
        "wait_lounge": Way("wait plan", 1.8, 0.8, closes="rebook_premium",
                           needs={"lounge_access": True}, flag="caught_up"),
    }, {
        "price_surge": Turn(5, hidden={"card_available": False}),
        "lounge_full": Turn(8, "wait_lounge", {"lounge_access": False}),
    }, {"card_available": {True: 1}}, {"lounge_access": True},
        {"ask_around": "rebook_premium wait_lounge"},
        visible="lounge_access", spare=18, late=10, decoys=0),

    "code_merge_crisis": Crisis(1250, 2, "outage_over", {
        "revert_commit": Way("delegate communicate", 1.5, 1.0, "outage_over", "hotfix",
                             flag="pipeline_unblocked"),
        "hotfix": Way("communicate spend", 3.0, 2.0, "outage_over", "revert_commit",
                      needs={"on_call_status": "alert"}, flag="bug_resolved"),
    }, {}, {"on_call_status": {"alert": 3, "asleep": 2}}, {}, {"ask_around": "hotfix"},
        visible="outage_over", spare=6, late=2, decoys=0),

    # Dialling in brings the organiser online, but gives up the ride. Whether it takes that has
    # to be known before the train is in the tunnel.
    "train_delay": Crisis(150, 3, "arrived moved", {
        "dial_in": Way("communicate", 2.0, 1.0, "arrived", "rideshare",
                       sets={"organiser_online": True}),
        "rideshare": Way("spend communicate", 2.5, 1.5, "arrived", "dial_in", 90),
        "reschedule": Way("communicate", 1.5, 0.8, "moved", needs={"organiser_online": True}),
    }, {
        "delay_extended": Turn(2, "dial_in"),
        "rideshare_surge": Turn(4, "rideshare"),
    }, {"organiser_online": {True: 7, False: 3}}, {}, {"tidy_up": "reschedule"}),

    # The estimate blocks the card, so there is only time to try at once; a neighbour who is
    # asked after it vouches for the deposit, but then the day is saved before the week is.
    "car_breakdown": Crisis(500, 4, "mobile today", {
        "rent_car": Way("spend communicate", 2.5, 1.5, "mobile", cost=200,
                        needs={"deposit_possible": True}),
        "rideshare_week": Way("spend", 1.5, 1.0, "mobile", "rent_car", 120),
        "borrow_car": Way("communicate", 2.0, 1.2, "today", sets={"deposit_possible": True}),
    }, {
        "repair_estimate": Turn(2, hidden={"deposit_possible": False}),
        "rental_shortage": Turn(5, "rent_car"),
    }, {"deposit_possible": {True: 3, False: 2}}, {}, {"doze": "borrow_car"}),

    # The ride is to be had at once or never. The car pool forms late, and until then a decoy
    # can give away the seat.
    "rideshare_surge": Crisis(200, 3, "covered pooled", {
        "pay_surge": Way("spend", 2.0, 1.5, "covered", "remote", 90, {"driver_accepts": True}),
        "carpool": Way("communicate negotiate", 3.0, 2.0, "pooled", cost=20,
                       needs={"colleagues_leaving": True}),
        "remote": Way("communicate", 1.5, 1.0, "covered", "pay_surge"),
    }, {
        "surge_spike": Turn(1, "pay_surge"),
        "meeting_reminder": Turn(3, world={"colleagues_leaving": True}),
    }, {"driver_accepts": {True: 4, False: 1}}, {"colleagues_leaving": False},
        {"ask_around": "carpool"}),

    # The manager surely listens once the strike is extended, but then the sofa is taken.
    "transit_strike": Crisis(400, 4, "agreed riding", {
        "wfh_negotiate": Way("communicate negotiate", 3.0, 2.0, "agreed",
                             needs={"manager_open": True}),
        "micromobility": Way("spend", 2.0, 1.0, "riding", cost=120),
        "colleague_crash": Way("communicate", 1.5, 0.8, "riding", cost=40),
    }, {
        "strike_extended": Turn(2, "colleague_crash", hidden={"manager_open": True}),
        "scooter_shortage": Turn(5, "micromobility"),
    }, {"manager_open": {True: 1, False: 1}}, {}, {"read_up": "colleague_crash"}),

    # Less work gives up the new job, which is needed if the team has no room. From difficulty
    # 4 on the budget does not bear both less work and help.
    "career": Crisis(500, 2, "relieved shared", {
        "reduce_workload": Way("communicate", 2.0, 1.0, "relieved", "find_job", 200),
        "find_job": Way("spend communicate", 3.0, 1.5, "relieved shared",
                        "reduce_workload delegate_team", 300),
        "delegate_team": Way("delegate", 1.5, 0.8, "shared", "find_job", 250,
                             {"team_has_room": True}),
    }, {"boss_asks": Turn(3, "find_job")}, {"team_has_room": {True: 1, False: 1}}, {},
        {"ask_around": "delegate_team"}),

    # Cash from the fund makes the lender willing, but is paid less than a sale, and a late fee
    # takes it. At difficulty 5 the budget does not bear both the plan and a sale.
    "finances": Crisis(1000, 3, "planned cash", {
        "emergency_fund": Way("spend", 1.0, 0.5, "cash", cost=300, sets={"lender_willing": True}),
        "payment_plan": Way("communicate", 2.5, 1.0, "planned", "emergency_fund", 350,
                            {"lender_willing": True}),
        "sell_asset": Way("communicate spend", 1.5, 0.8, "cash", "payment_plan", 380),
    }, {"late_fee": Turn(2, "emergency_fund")}, {"lender_willing": {True: 2, False: 3}}, {},
        {"doze": "payment_plan"}),

    # Each of two talks opens the other. Which of them can come first is hidden, and there is
    # time for one attempt.
    "relationships": Crisis(800, 3, "talked helped", {
        "therapy": Way("spend communicate", 3.0, 1.5, "helped", "give_space", 400,
                       {"partner_willing": True}, {"partner_calm": True}),
        "conversation": Way("communicate", 2.0, 1.0, "talked",
                            needs={"partner_calm": True}, sets={"partner_willing": True}),
        "give_space": Way("rest", 1.0, 0.5, "talked helped", "therapy conversation"),
    }, {"partner_escalates": Turn(4, "therapy conversation")},
        {"partner_willing": {True: 3, False: 2}, "partner_calm": {True: 2, False: 3}}, {},
        {"tidy_up": "conversation"}),

    # Leave has to be taken before the doctor calls, and new habits rule it out; a decoy can
    # cost the visit.
    "physical_health": Crisis(1500, 5, "seen rested", {
        "leave": Way("communicate rest", 2.5, 1.0, "rested", cost=500,
                     needs={"cover_found": True}),
        "doctor": Way("spend communicate", 2.0, 1.0, "seen", cost=400, needs={"slot_free": True}),
        "lifestyle": Way("rest", 1.5, 0.5, "rested", "leave", 100),
    }, {"doctor_call": Turn(3, "leave", {"slot_free": True})},
        {"cover_found": {True: 7, False: 3}}, {"slot_free": False}, {"tidy_up": "doctor"}),

    # Quiet days make fit to talk, but rule out medication, and soon it is too late for them.
    # At difficulty 5 the budget does not bear both therapy and medication.
    "mental_wellbeing": Crisis(600, 3, "treated calm", {
        "therapy": Way("spend communicate", 3.0, 1.5, "treated", cost=300,
                       needs={"fit_to_talk": True}),
        "disconnect": Way("rest", 1.5, 0.8, "calm", "medication", sets={"fit_to_talk": True}),
        "medication": Way("spend", 2.0, 1.0, "calm", "disconnect", 150),
    }, {"panic_attack": Turn(2, "disconnect")}, {"fit_to_talk": {True: 1, False: 1}}, {},
        {"doze": "therapy"}),

    # Handing over takes two steps before the new request, and convinces the boss.
    "time": Crisis(300, 4, "freed shared", {
        "reset_priorities": Way("communicate", 2.0, 1.0, "freed", needs={"boss_agrees": True}),
        "delegate_tasks": Way("spend delegate", 1.5, 0.8, "shared", cost=150,
                              sets={"boss_agrees": True}),
        "cancel": Way("communicate", 1.0, 0.5, "freed", "reset_priorities"),
    }, {"new_request": Turn(3, "delegate_tasks")}, {"boss_agrees": {True: 1, False: 1}}, {},
        {"read_up": "reset_priorities"}),
}
# fmt: on
