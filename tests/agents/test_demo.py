"""demo/advisor: the route of its script, in one process and in a fresh one at each step."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from hitl_tui.agents.agent import Agent
from hitl_tui.agents.demo import StoryDraft, advisor_reply, compose, recognise
from hitl_tui.errors import UsageError

TASK = "Explain what a closure is to someone who cooks."
OWN_TASK = "Write about quarterly budgeting for nurses."


def say(prompt: str, system: str = "") -> str:
    """One line of the script, from nothing but the prompt."""
    head = [{"role": "system", "content": system}] if system else []
    return advisor_reply([*head, {"role": "user", "content": prompt}])


def revise(task: str, feedback: str, draft: str) -> str:
    return say(f"{task}\n\nFeedback on your last draft:\n{feedback}\n\nYour last draft:\n{draft}")


def advise(task: str, draft: str) -> str:
    return say(f"Task:\n{task}\n\nDraft:\n{draft}")


def follow(task: str, own_feedback: str = "") -> tuple[list[str], list[str]]:
    """Drafts and verdicts until approval; `own_feedback` replaces the advisor's first."""
    drafts, verdicts = [say(task)], []
    while len(drafts) < 6:
        verdicts.append(advise(task, drafts[-1]))
        if verdicts[-1].startswith("approved"):
            break
        feedback = (
            own_feedback if own_feedback and len(drafts) == 1 else verdicts[-1].removeprefix("revise: ")
        )
        drafts.append(revise(task, feedback, drafts[-1]))
    return drafts, verdicts


@pytest.mark.parametrize("task", [TASK, OWN_TASK, "Hi?"])
@pytest.mark.parametrize(
    "feedback", ["", "shorter", "no code please", "less cooking, one more example", "rhyme it"]
)
def test_two_revisions_then_approval(task: str, feedback: str) -> None:
    drafts, verdicts = follow(task, feedback)
    assert [verdict.split()[0].strip(":.") for verdict in verdicts] == ["revise", "revise", "approved"]
    assert len(set(drafts)) == 3


def test_the_default_drafts_are_for_reading() -> None:
    drafts, verdicts = follow(TASK)
    assert all(600 <= len(draft) <= 900 for draft in drafts)
    assert all(draft.count("\n\n") >= 2 for draft in drafts)
    assert all(verdict.count(". ") <= 3 for verdict in verdicts)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("wish", ["", "no kitchen"])
def test_the_code_of_the_drafts_runs(version: int, wish: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = compose(TASK, StoryDraft(version, frozenset({wish} - {""})))
    assert ("```python" in text) == (version == 3)
    for block in text.split("```python\n")[1:]:
        code = block.partition("```")[0]
        exec(code, {})
        assert capsys.readouterr().out.strip() == code.rpartition("# ")[2].strip()


def test_shorter_makes_it_shorter() -> None:
    first = say(TASK)
    plain = revise(TASK, advise(TASK, first).removeprefix("revise: "), first)
    short = revise(TASK, "Please make it shorter!", first)
    assert len(short) < 0.65 * len(plain)
    assert "Taken up: “Please make it shorter!”" in short


def test_feedback_against_food_removes_the_kitchen_for_good() -> None:
    drafts, verdicts = follow(TASK, "No food, please: I am a locksmith.")
    for text in (*drafts[1:], *verdicts[1:]):
        story = text.partition("Taken up")[0].casefold()
        assert not any(word in story for word in ("kitchen", "jar", "sauce", "recipe"))
    assert "ticket" in drafts[2]


def test_another_example_adds_one() -> None:
    first = say(TASK)
    assert "second example" in revise(TASK, "Give me another example", first)
    assert "second example" not in revise(TASK, "No example, please", first)


def test_no_code_is_remembered_though_the_advisor_wants_some() -> None:
    drafts, _ = follow(TASK, "no code please")
    assert "```" not in drafts[2]


def test_feedback_the_script_cannot_follow_is_quoted_honestly() -> None:
    assert "Taken up: “make it rhyme”: a scripted demo" in revise(TASK, "make it rhyme", say(TASK))


def test_feedback_added_to_the_advisors_is_taken_up_too() -> None:
    first = say(TASK)
    both = advise(TASK, first).removeprefix("revise: ") + "\n\nAnd shorter."
    assert "Taken up: “And shorter.”" in revise(TASK, both, first)


def test_the_advisor_recognises_a_draft_that_a_person_edited() -> None:
    edited = say(TASK).replace("A closure is", "Listen: a closure is", 1)
    verdict = advise(TASK, edited)
    assert verdict.startswith("approved")
    assert "Listen: a closure is a function" in verdict
    assert advise(TASK, "  \n").startswith("revise:")


def test_a_humans_draft_is_reworked_not_replaced() -> None:
    mine = "Onions first. Then the rest.\n\nA closure remembers. So do I."
    assert revise(TASK, "shorter", mine).startswith("Onions first.\n\nA closure remembers.\n\nTaken up:")


@pytest.mark.parametrize("task", [TASK, OWN_TASK])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_draft_is_recognised(task: str, version: int) -> None:
    text = compose(task, StoryDraft(version))
    found = recognise(task, f"\n{text} \n")
    assert found is not None
    assert found.version == version


def test_another_task_is_answered_in_its_own_words() -> None:
    draft = say(OWN_TASK)
    assert "scripted" in draft or "follows a script" in draft
    assert OWN_TASK in draft
    assert "budgeting" in draft


def test_an_advisor_by_its_role_judges_a_bare_draft() -> None:
    assert say("My own words.", "Your role: advisor").startswith("approved")


def test_agents_know_the_demo_model_and_report_a_misspelt_name() -> None:
    assert repr(Agent("worker", "demo/advisor")) == "Agent('worker', 'demo/advisor')"
    with pytest.raises(UsageError, match="demo/nobody"):
        Agent("worker", "demo/nobody")


@pytest.mark.integration
def test_a_fresh_process_continues_at_any_step() -> None:
    drafts, verdicts = follow(TASK)
    asked = [TASK]
    for draft, verdict in zip(drafts, verdicts, strict=True):
        asked.append(f"Task:\n{TASK}\n\nDraft:\n{draft}")
        feedback = verdict.removeprefix("revise: ")
        asked.append(f"{TASK}\n\nFeedback on your last draft:\n{feedback}\n\nYour last draft:\n{draft}")
    expected = [text for pair in zip(drafts, verdicts, strict=True) for text in pair]
    script = (
        "import json, sys\n"
        "from hitl_tui.agents.demo import advisor_reply\n"
        "print(json.dumps(advisor_reply([{'role': 'user', 'content': json.load(sys.stdin)}])))"
    )
    for prompt, reply in zip(asked, expected, strict=False):
        done = subprocess.run(
            [sys.executable, "-c", script],
            input=json.dumps(prompt),
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout) == reply
