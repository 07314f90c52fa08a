"""What the calls mean: one test for each thing that applications rely on."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from live.making import Clock
from manyarms.service.personalizer import default_agent, ranking
from manyarms.service.personalizer.durations import seconds_of
from service.personalizer.calling import Personalizer, asking, chances, serving


@pytest.fixture
def clock() -> Clock:
    """Seconds, moved by hand."""
    return Clock(1.8e9)


@pytest.fixture
def service(clock: Clock) -> Iterator[Personalizer]:
    """A service that knows nothing beforehand."""
    with serving(clock=clock) as found:
        yield found


def _teach(service: Personalizer, likes: str, rounds: int = 40) -> None:
    """Let one action be the good one: offered alone every other time, so that no luck is needed for it to be tried."""
    for number in range(rounds):
        answer = service.rank(asking(likes) if number % 2 else asking())
        service.reward(answer["eventId"], float(answer["rewardActionId"] == likes))
    service.learned()


def _best(service: Personalizer) -> str:
    found = chances(service.rank(asking()))
    return max(found, key=lambda name: found[name])


# ---- events


def test_probabilities_sum_to_1_and_the_first_action_is_greedy_before_anything_is_learned(
    service: Personalizer,
) -> None:
    found = chances(service.rank(asking("pasta", "salad", "soup", "fish")))
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["pasta"] == pytest.approx(0.85)
    assert found["salad"] == found["soup"] == found["fish"] == pytest.approx(0.05)


def test_the_event_id_is_made_where_it_is_null(service: Personalizer) -> None:
    one, other = service.rank(asking(eventId=None))["eventId"], service.rank(asking())["eventId"]
    assert one != other
    service.reward(one, 1.0)


def test_an_event_id_may_have_any_characters(service: Personalizer) -> None:
    name = "shop/2027 %41?ä#"
    assert service.rank(asking(eventId=name))["eventId"] == name
    answer = service.request(
        "POST", "/personalizer/v1.0/events/shop%2F2027%20%2541%3F%C3%A4%23/reward", json={"value": 1}
    )
    assert answer.status_code == 204


def test_the_event_id_seeds_the_draw() -> None:
    """The same ids get the same actions from equal models, whenever they come."""
    names, found = [uuid.UUID(int=number).hex for number in range(40)], []
    for order in (names, names[::-1]):
        with serving(default_agent(exploration=0.8, seed=7)) as service:
            found.append({name: service.rank(asking(eventId=name))["rewardActionId"] for name in order})
    assert found[0] == found[1]
    assert len(set(found[0].values())) > 1


def test_the_same_id_and_body_have_the_same_answer_later(service: Personalizer) -> None:
    first = service.rank(asking(eventId="one"))
    _teach(service, "soup")
    assert chances(service.rank(asking())) != chances(first)
    assert service.rank(asking(eventId="one")) == first


def test_probabilities_are_how_often_actions_are_chosen(service: Personalizer) -> None:
    """Chi-square over event ids: 600 events, refused once in a million where it is true."""
    _teach(service, "salad")
    answers = [service.rank(asking(eventId=f"n{number}")) for number in range(600)]
    law = chances(answers[0])
    assert all(chances(answer) == law for answer in answers)  # nothing was learned meanwhile
    counted = Counter(answer["rewardActionId"] for answer in answers)
    names = sorted(law)
    expected = 600 * np.array([law[name] for name in names])
    assert stats.chisquare([counted[name] for name in names], expected).pvalue > 1e-6


def test_what_was_chosen_need_not_be_first_in_the_ranking(service: Personalizer) -> None:
    answers = [service.rank(asking()) for _ in range(200)]
    assert any(answer["ranking"][0]["id"] != answer["rewardActionId"] for answer in answers)
    for answer in answers:
        listed = [one["probability"] for one in answer["ranking"]]
        assert listed == sorted(listed, reverse=True)


def test_excluded_actions_keep_their_places_with_probability_0(service: Personalizer) -> None:
    for _ in range(30):
        answer = service.rank(asking("pasta", "salad", "soup", "fish", excludedActions=["pasta", "soup", "unknown"]))
        assert [one["id"] for one in answer["ranking"]][::2] == ["pasta", "soup"]
        found = chances(answer)
        assert found["pasta"] == found["soup"] == 0.0
        assert found["salad"] + found["fish"] == pytest.approx(1.0)
        assert answer["rewardActionId"] in ("salad", "fish")


def test_retired_actions_are_like_excluded_ones(service: Personalizer) -> None:
    service.rank(asking())
    service.live.retire("salad")
    answer = service.rank(asking())
    assert chances(answer)["salad"] == 0.0
    refused = service.call("POST", "/rank", asking("salad"))
    assert refused.status_code == 400


def test_all_new_actions_of_a_call_are_one_operation(service: Personalizer) -> None:
    def operations() -> int:
        return int(service.live.database.read("SELECT COUNT(*) FROM operations")[0][0])

    before = operations()
    service.rank(asking(*(f"a{number}" for number in range(50))))
    assert operations() == before + 1
    service.rank(asking(*(f"a{number}" for number in range(50))))
    assert operations() == before + 1
    assert service.live.catalogue is not None
    assert len(service.live.catalogue) == 51  # and the one that stands in for none


# ---- rewards


def test_rewards_teach(service: Personalizer) -> None:
    _teach(service, "soup", rounds=60)
    assert _best(service) == "soup"


def test_the_earliest_reward_counts(service: Personalizer, clock: Clock) -> None:
    event = service.rank(asking())["eventId"]
    service.reward(event, 1.0)
    service.reward(event, -1.0)
    assert service.learned() == 1
    assert service.live.status()["replaced"] == 0


def test_rewards_add_up_where_the_configuration_says_so(service: Personalizer) -> None:
    service.configure(rewardAggregation="sum")
    event = service.rank(asking())["eventId"]
    for _ in range(3):
        service.reward(event, 0.25)
    service.learned()
    rows = service.live.database.read("SELECT COUNT(*), SUM(value) FROM rewards")
    assert rows[0] == (3, 0.75)


def test_a_request_that_is_sent_again_counts_once(service: Personalizer) -> None:
    service.configure(rewardAggregation="sum")
    event = service.rank(asking())["eventId"]
    for _ in range(3):
        sent = service.call(
            "POST", f"/events/{event}/reward", {"value": 0.5}, headers={"x-ms-client-request-id": "number 1"}
        )
        assert sent.status_code == 204
    assert service.live.database.read("SELECT COUNT(*) FROM rewards")[0][0] == 1


def test_an_event_without_a_reward_has_the_default(service: Personalizer, clock: Clock) -> None:
    service.rank(asking())
    assert service.learned() == 0
    clock.now += 601.0
    service.rank(asking())
    assert service.learned() == 1


def test_a_late_reward_takes_the_place_of_the_default(service: Personalizer, clock: Clock) -> None:
    """Personalizer logged it and did not learn; here the posterior is that of the real reward."""
    event = service.rank(asking())["eventId"]
    clock.now += 601.0
    service.rank(asking())
    assert service.learned() == 1
    service.reward(event, 1.0)
    assert service.learned() == 1
    assert service.live.status()["replaced"] == 1


# ---- activation


def test_a_deferred_event_teaches_nothing_until_it_is_activated(service: Personalizer) -> None:
    event = service.rank(asking(deferActivation=True))["eventId"]
    service.reward(event, 1.0)
    assert service.learned() == 0
    assert service.call("POST", f"/events/{event}/activate").status_code == 204
    assert service.learned() == 1


def test_a_deferred_event_that_is_never_activated_is_never_learned(service: Personalizer, clock: Clock) -> None:
    event = service.rank(asking(deferActivation=True))["eventId"]
    service.reward(event, 1.0)
    clock.now += 601.0
    service.rank(asking())
    assert service.learned() == 0


def test_activated_without_a_reward_is_the_default(service: Personalizer, clock: Clock) -> None:
    event = service.rank(asking(deferActivation=True))["eventId"]
    service.call("POST", f"/events/{event}/activate")
    clock.now += 601.0
    service.rank(asking())
    assert service.learned() == 1


def test_activation_is_for_events_that_still_wait(service: Personalizer, clock: Clock) -> None:
    event = service.rank(asking(deferActivation=True))["eventId"]
    clock.now += 601.0
    answer = service.call("POST", f"/events/{event}/activate", None, preview=True)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "InvalidEventIdToActivate"


def test_activating_what_is_active_changes_nothing(service: Personalizer) -> None:
    event = service.rank(asking())["eventId"]
    assert service.call("POST", f"/events/{event}/activate").status_code == 204


# ---- learning modes


def test_an_apprentice_shows_the_baseline_and_learns(service: Personalizer) -> None:
    assert service.configure(learningMode="Apprentice")["learningMode"] == "Apprentice"
    for _ in range(30):
        answer = service.rank(asking("salad", "pasta", "soup", excludedActions=["salad"]))
        assert answer["rewardActionId"] == "pasta"
        assert chances(answer) == {"salad": 0.0, "pasta": 1.0, "soup": 0.0}
        service.reward(answer["eventId"], -1.0)
    assert service.learned() == 30
    assert service.configure(learningMode="Online")["learningMode"] == "Online"
    assert chances(service.rank(asking("pasta", "soup")))["soup"] > 0.5  # what the apprentice has learned


def test_logging_only_shows_the_baseline_and_learns_nothing(service: Personalizer, clock: Clock) -> None:
    assert service.configure(learningMode="LoggingOnly")["learningMode"] == "LoggingOnly"
    events = []
    for _ in range(5):
        answer = service.rank(asking())
        assert answer["rewardActionId"] == "pasta"
        service.reward(answer["eventId"], 1.0)
        events.append(answer["eventId"])
    assert service.call("POST", f"/events/{events[0]}/activate").status_code == 204
    clock.now += 601.0
    service.rank(asking())
    assert service.learned() == 0
    assert service.live.database.read("SELECT COUNT(*) FROM rewards")[0][0] == 5
    assert service.configure(learningMode="Apprentice")["learningMode"] == "Apprentice"
    service.reward(service.rank(asking())["eventId"], 1.0)
    assert service.learned() == 1


def test_mode_and_rewards_may_change_together(service: Personalizer) -> None:
    """Personalizer refused that."""
    found = service.configure(learningMode="Apprentice", defaultReward=-1.0, rewardWaitTime="PT1H")
    assert (found["defaultReward"], found["rewardWaitTime"], found["learningMode"]) == (-1.0, "PT1H", "Apprentice")


# ---- configuration


def test_nothing_is_reset_when_the_configuration_changes(service: Personalizer) -> None:
    _teach(service, "soup", rounds=60)
    learned = service.learned()
    service.configure(
        rewardWaitTime="PT4H",
        defaultReward=-1.0,
        rewardAggregation="sum",
        explorationPercentage=0.6,
        logRetentionDays=3,
    )
    assert service.learned() >= learned
    found = chances(service.rank(asking()))
    assert found["soup"] == pytest.approx(0.6)  # still the best, with more exploration
    assert found["pasta"] == found["salad"] == pytest.approx(0.2)


def test_events_count_by_what_was_agreed_when_they_were_ranked(service: Personalizer, clock: Clock) -> None:
    before = service.rank(asking())["eventId"]
    service.configure(rewardWaitTime="P1D")
    service.rank(asking())
    clock.now += 601.0
    service.rank(asking())
    assert service.learned() == 1
    assert service.live.event(before).active


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("PT5S", 5.0), ("PT10M", 600.0), ("PT4H", 14_400.0), ("P1DT12H", 129_600.0), ("PT90.5S", 90.5)],
)
def test_waiting_times_are_iso_8601(service: Personalizer, text: str, seconds: float) -> None:
    found = service.configure(rewardWaitTime=text)["rewardWaitTime"]
    assert service.live.settings.wait == seconds == seconds_of(found)


# ---- model and log


def test_a_deleted_model_starts_afresh_and_can_be_rolled_back(service: Personalizer) -> None:
    _teach(service, "soup", rounds=60)
    before = chances(service.rank(asking()))
    assert service.call("DELETE", "/model").status_code == 204
    assert _best(service) == "pasta"
    service.live.roll_back()
    assert chances(service.rank(asking())) == before


def test_a_model_may_be_deleted_again_and_again(service: Personalizer) -> None:
    for _ in range(4):
        assert service.call("DELETE", "/model").status_code == 204
    assert len(service.live.status()["arms"]) == 2  # type: ignore[arg-type]
    _teach(service, "soup", rounds=60)
    assert _best(service) == "soup"


def test_deleting_the_log_keeps_what_was_learned(service: Personalizer, clock: Clock) -> None:
    _teach(service, "soup", rounds=60)
    clock.now += 601.0
    service.rank(asking(eventId="waits"))
    service.learned()
    before = chances(service.rank(asking()))
    assert service.call("DELETE", "/logs").status_code == 204
    assert service.live.database.read("SELECT COUNT(*) FROM rewards")[0][0] == 0
    assert chances(service.rank(asking())) == before
    service.reward("waits", 1.0)


# ---- explanations


def test_answers_are_explained_where_the_configuration_says_so(service: Personalizer) -> None:
    assert "inferenceExplanation" not in service.rank(asking())
    _teach(service, "soup", rounds=30)
    service.configure(isInferenceExplainabilityEnabled=True)
    answer = service.rank(asking(excludedActions=["pasta"]))
    told = {
        one["id"]: {part["name"]: part["score"] for part in one["features"]} for one in answer["inferenceExplanation"]
    }
    assert told.keys() == {"salad", "soup"}
    names = {"1", "user.device=mobile", "id=soup", "kind=s", "user.device=mobile^id=soup", "user.device=mobile^kind=s"}
    assert told["soup"].keys() <= names
    scores = {name: sum(parts.values()) for name, parts in told.items()}
    assert max(scores, key=lambda name: scores[name]) == answer["ranking"][1]["id"]  # what is excluded comes first


def test_calls_bring_so_many_actions_and_no_more(service: Personalizer, monkeypatch: pytest.MonkeyPatch) -> None:
    service.rank(asking())
    monkeypatch.setattr(ranking, "MOST_KNOWN", 5)
    service.rank(asking("fish"))
    answer = service.call("POST", "/rank", asking("more"), preview=True)
    assert (answer.status_code, answer.json()["error"]["target"]) == (400, "actions")
    service.rank(asking("fish", "soup"))
