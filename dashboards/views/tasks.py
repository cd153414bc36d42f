"""Page: tasks."""

from dashboards import tasks, session

tasks.render(*session.current())
