"""Page: teams."""

from dashboards import teams, session

teams.render(*session.current())
