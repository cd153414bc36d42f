"""Page: models."""

from dashboards import models, session

models.render(*session.current())
