"""Steps of a plan: given with the task, or planned by a model and repaired.

**A step is a small run.** What runs has a `State` of its own (`child`), folded by the rules of any run and asked for
its moves like any run: a tool step begins with its one call, any other with what it is told (`steps`). What happens in
it stands in the journal as `InStep`. So approvals, doubts and crashes inside a step need no code of their own here.

Around these small runs stands a table: `next` says what to start now, `fold` and `attempt` what has happened. What a
model proposes is read by `forms`, held to rules by `choose`, `accept` and `reflect`, and made a new version of the plan
by `edits`; `limits` says what may be used up and how it ends; `requests`, `schemas` and `history` what a model is
asked. Source: spec/planning.md; docs/decisions/15.
"""
