"""A plan as data: each step once and in its place, its edges, its versions and what an edit changed."""

from telling_world import asking, corpus, planned

from cases import each
from surefoot.telling.layers import layers_of
from surefoot.telling.plan import plan_of
from surefoot.telling.tale import tale_of
from surefoot.types.plan_events import PlanEdited, PlanMade


@each("name", planned())
def test_each_step_has_a_place_of_its_own_behind_what_it_needs(name: str) -> None:
    records = planned()[name]
    for cut in range(1, len(records), max(1, len(records) // 6)):
        view = plan_of(tale_of(records[:cut]))
        assert view is not None
        nodes = {node.id: node for node in view.steps}
        assert len(nodes) == len(view.steps)
        assert len({(node.row, node.column) for node in view.steps}) == len(nodes)
        assert all(nodes[start].column < nodes[end].column for start, end in view.edges)
        assert all(one in nodes[end].depends_on for one, end in view.edges)


@each("name", planned())
def test_versions_and_edits_name_the_records_that_made_them(name: str) -> None:
    records = planned()[name]
    tale = tale_of(records)
    view = plan_of(tale)
    assert view is not None
    made = [record.seq for record in records if isinstance(record.event, PlanMade | PlanEdited)]
    assert [seq for _, seq in tale.versions] == made
    for version, seq in tale.versions:
        then = plan_of(tale_of(records[: seq + 1]))
        assert then is not None
        assert then.version == version
    for edit in view.edits:
        event = records[edit.at].event
        assert isinstance(event, PlanEdited)
        assert (event.version, event.strategy.type) == (edit.version, edit.strategy)
        assert edit.text.startswith(f"v{event.base_version} → v{event.version} ")
        assert {*edit.added, *edit.removed} <= {node.id for node in view.steps}


def test_some_of_these_plans_were_edited() -> None:
    views = [plan_of(tale_of(records)) for records in planned().values()]
    assert sum(len(view.edits) for view in views if view is not None) >= 3


def test_a_run_without_a_plan_has_none() -> None:
    assert plan_of(tale_of(corpus()["native calls"])) is None


def test_a_step_that_waits_says_so() -> None:
    view = plan_of(tale_of(asking()["a step"]))
    assert view is not None
    node = view.steps[0]
    assert (node.id, node.status, node.tools, node.what) == ("a", "waiting", ("send_mail",), "Ann")
    assert node.result == "waits for a person"


def test_an_edge_that_passes_layers_has_a_place_in_each() -> None:
    made = layers_of(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    assert [[place.step_id for place in layer] for layer in made.layers] == [["a"], ["b", ""], ["c"]]
    assert len(made.paths["a", "c"]) == 3
    assert layers_of([], []).layers == ()
