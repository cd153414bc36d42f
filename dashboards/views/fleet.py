"""Page: GPU and pools."""

from dashboards import fleet, session

fleet.render(*session.current())
