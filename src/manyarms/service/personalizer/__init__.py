"""Azure Personalizer's interface on a live store: its applications move by changing base address and key.

routes(service)      the paths, for the service's application
default_agent()      an agent that knows neither actions nor features beforehand
open_store(address)  a store with that agent and Personalizer's settings
error_response(...)  what the service refuses, in Personalizer's form
"""

from manyarms.service.personalizer.agent import default_agent, open_store
from manyarms.service.personalizer.errors import error_response, is_personalizer
from manyarms.service.personalizer.routes import routes

__all__ = ["default_agent", "error_response", "is_personalizer", "open_store", "routes"]
