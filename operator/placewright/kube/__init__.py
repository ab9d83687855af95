"""The network's side of the scheduler: login, watches, binding, events, status."""
