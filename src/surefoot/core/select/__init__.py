"""Selection: which tools a run may know, and which of them a model is shown."""
