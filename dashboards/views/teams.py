"""Page: teams."""

from dashboards import session, teams

teams.render(*session.current())
