"""What an agent may know besides its task: references it resolves, conventions of a workspace, a store of facts."""
