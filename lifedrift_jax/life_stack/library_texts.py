"""The texts of the built-in tasks. Plain Python."""

from collections.abc import Mapping
from typing import NamedTuple


class Texts(NamedTuple):
    """What is said about a task."""

    goal: str
    story: str
    routes: Mapping[str, tuple[str, str]]  # id -> name, description
    events: Mapping[str, str] = {}  # id -> description


DECOY_TEXTS = {
    "ask_around": (
        "Tell everyone about it",
        "Sympathy is cheap, and whoever hears of your trouble may act on it.",
    ),
    "read_up": ("Read up on it", "An hour of forums, while others take what is left."),
    "tidy_up": ("Tidy up first", "It feels like progress, and someone is kept waiting."),
    "doze": ("Lie down for a moment", "A moment tends to become an afternoon."),
}

TEXTS = {
    "flight_crisis": Texts(
        "Survive an airport cancellation.",
        "Your flight is cancelled. The last seats go to whoever pays now, if the card is not "
        "blocked; the lounge still lets you in, and fills up.",
        {
            "rebook_premium": (
                "Rebook at a premium",
                "Talk to the desk and pay for a seat tonight, by card.",
            ),
            "wait_lounge": (
                "Work from the lounge",
                "Wait for tomorrow's flight and catch up on what lay undone.",
            ),
        },
        {
            "price_surge": "Fares surge: the last seats are beyond the limit of the card.",
            "lounge_full": "The lounge is full and admits nobody.",
        },
    ),
    "code_merge_crisis": Texts(
        "Fix the outage in production.",
        "A merge broke production. The engineer on call may be alert or asleep; without them "
        "nobody can approve a fix.",
        {
            "revert_commit": (
                "Revert the commit",
                "Have the merge taken back and tell the team; the bug stays for another day.",
            ),
            "hotfix": (
                "Ship a hotfix",
                "Work it out with the engineer on call and pay for the emergency release.",
            ),
        },
    ),
    "train_delay": Texts(
        "Attend the meeting that your train will miss, and have the next one moved.",
        "The train stands still, near a tunnel. The organiser may not be online before the "
        "meeting, and in the rain rides will not stay affordable.",
        {
            "dial_in": (
                "Dial in from the train",
                "Stay and join by phone while there is a signal; that brings the organiser online.",
            ),
            "rideshare": ("Take a ride", "Leave the train, pay a driver and give directions."),
            "reschedule": (
                "Move the next meeting",
                "Ask the organiser for a later slot, which takes them to be online.",
            ),
        },
        {
            "delay_extended": "The delay is extended, and the train waits in the tunnel.",
            "rideshare_surge": "Fares for a ride are four times as high.",
        },
    ),
    "car_breakdown": Texts(
        "Get through today and stay mobile for the week without your car.",
        "The car is at the garage, which will put its estimate on hold on your card. Whether "
        "the card bears a deposit even now is not certain; a neighbour would vouch for you.",
        {
            "rent_car": ("Rent a car", "Pay and sign at the desk, if a deposit is possible."),
            "rideshare_week": (
                "Rides for the week",
                "Buy a pass for a week of rides, instead of a rental.",
            ),
            "borrow_car": (
                "Borrow the neighbour's car",
                "Ask for today; the neighbour also vouches for your deposit.",
            ),
        },
        {
            "repair_estimate": "The estimate is in, and the garage holds it on your card.",
            "rental_shortage": "The last rental cars are gone.",
        },
    ),
    "rideshare_surge": Texts(
        "Attend this morning's meeting, and agree on sharing a car from now on.",
        "Fares are about to rise, and a driver may still decline. Colleagues who could share "
        "a car leave only once they are reminded of the meeting.",
        {
            "pay_surge": (
                "Pay the fare",
                "Pay for a ride now, if a driver accepts, and be there in person.",
            ),
            "carpool": (
                "Form a car pool",
                "Ask the colleagues who are leaving, and agree on how to share.",
            ),
            "remote": ("Attend remotely", "Tell them that you join by video, and let the ride go."),
        },
        {
            "surge_spike": "Fares spike beyond what can be paid.",
            "meeting_reminder": "All are reminded of the meeting, and colleagues set out.",
        },
    ),
    "transit_strike": Texts(
        "Get to work during the strike, and agree on working from home.",
        "Trains and buses stand still. The manager may not listen before it is clear that "
        "the strike goes on; until then a colleague near the office has a free sofa.",
        {
            "wfh_negotiate": (
                "Negotiate to work from home",
                "Bring it up and settle on days, with a manager who listens.",
            ),
            "micromobility": ("Ride a scooter", "Pay for a pass for one of the city's scooters."),
            "colleague_crash": ("Sleep at a colleague's", "Ask for the sofa near the office."),
        },
        {
            "strike_extended": "The strike goes on: managers give way, and the sofa is taken.",
            "scooter_shortage": "No scooter is left in the city.",
        },
    ),
    "career": Texts(
        "Be relieved at work, and have its load shared.",
        "The work is too much. The team may have room for some of it; another firm would "
        "take you, until your boss asks you to commit.",
        {
            "reduce_workload": (
                "Reduce your hours",
                "Ask for fewer hours and less pay; no other firm hires on such terms.",
            ),
            "find_job": (
                "Change jobs",
                "Pay for a coach and apply elsewhere; all else is settled by that.",
            ),
            "delegate_team": (
                "Hand work to the team",
                "Give projects and a bonus to colleagues with room, and stay to help them.",
            ),
        },
        {"boss_asks": "Your boss asks you to commit for a year, and you do."},
    ),
    "finances": Texts(
        "Agree on a plan for the debt, and have cash at hand.",
        "The arrears grow. The lender may want to see money before any talk, and the fund "
        "for emergencies will be eaten by the next fee.",
        {
            "emergency_fund": (
                "Break into the fund",
                "Pay a part from the emergency fund, which makes the lender willing.",
            ),
            "payment_plan": (
                "Agree on a payment plan",
                "Settle on instalments with a willing lender; the fund is pledged for them.",
            ),
            "sell_asset": (
                "Sell the motorbike",
                "Advertise it and pay the fees; no lender offers a plan to someone who sells out.",
            ),
        },
        {"late_fee": "A late fee is charged to the fund, and empties it."},
    ),
    "relationships": Texts(
        "Talk with your partner, and have help.",
        "You have not spoken for days. Your partner may be willing to see someone, or calm "
        "enough to talk: one would lead to the other. It will not stay quiet for long.",
        {
            "therapy": (
                "See a couples' therapist",
                "Pay for a session and speak there, if your partner is willing; it calms both.",
            ),
            "conversation": (
                "Talk it over",
                "An open talk with a calm partner, who then is willing to see someone.",
            ),
            "give_space": (
                "Give each other space",
                "A week apart: it ends the quarrel, and the talking.",
            ),
        },
        {"partner_escalates": "Your partner escalates: there is no talking any more."},
    ),
    "physical_health": Texts(
        "Be seen by a doctor, and rest.",
        "You work while ill. The practice will call when it has a slot; by then the rota is "
        "full. Whether someone can cover for you is open.",
        {
            "leave": (
                "Take sick leave",
                "Report it and stay in bed, if cover is found; it costs you a bonus.",
            ),
            "doctor": ("See the doctor", "Pay for the visit and describe it all, in a free slot."),
            "lifestyle": (
                "Change your habits",
                "Sleep and walk more, beside the work: no one grants leave for that.",
            ),
        },
        {"doctor_call": "The practice calls with a free slot, and the rota is closed."},
    ),
    "mental_wellbeing": Texts(
        "Be treated, and find calm.",
        "You no longer sleep, and panic is near. Whether you are fit to talk to someone is open; "
        "quiet days would help, while you can still be alone.",
        {
            "therapy": ("Start therapy", "Pay for a first session and talk, if fit to do so."),
            "disconnect": (
                "Disconnect",
                "Quiet days without phone or pills: they make you fit to talk.",
            ),
            "medication": ("Start medication", "Pay for what was prescribed, and go on as before."),
        },
        {"panic_attack": "A panic attack: being alone is no longer possible."},
    ),
    "time": Texts(
        "Free your calendar, and share the tasks.",
        "The week is full, and a new request is on its way. Your boss may not agree to other "
        "priorities before some tasks are handed over.",
        {
            "reset_priorities": (
                "Reset the priorities",
                "Go through the list with your boss, if they agree to it.",
            ),
            "delegate_tasks": (
                "Hand over tasks",
                "Hire help and brief it; seeing that, your boss agrees to much.",
            ),
            "cancel": (
                "Cancel appointments",
                "Call off what can be called off; no one talks of priorities then.",
            ),
        },
        {"new_request": "A new request comes in, and whoever could help is put on it."},
    ),
}
