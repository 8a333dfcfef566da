"""What a run is told as: rows, questions, plans, spans and exports. Pure."""
