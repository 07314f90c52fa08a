"""The calls of the service, a module for each topic: `routes(service)` gives its router."""
