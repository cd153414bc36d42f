"""Page: tasks."""

from dashboards import session, tasks

tasks.render(*session.current())
