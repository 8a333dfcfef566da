"""For tests of agents: models that follow a script, a journal that crashes, conformance cases."""
