"""Colours and type, once: for Streamlit's own elements and for the charts. Few colours, stable ones."""

from collections.abc import Iterable

TEXT = "#1F2933"
MUTED = "#66707C"
FAINT = "#9AA3AE"
GRID = "#E9ECF0"
LINE = "#C9CFD8"
PRIMARY = "#1F4E79"
UP = "#A8473A"
DOWN = "#3F7D5E"
OPEN_BAND = "#F7F4EC"
FONT = "Source Sans, Source Sans Pro, sans-serif"

STREAMLIT = {
    "base": "light",
    "primaryColor": PRIMARY,
    "backgroundColor": "#FFFFFF",
    "secondaryBackgroundColor": "#F5F7F9",
    "textColor": TEXT,
    "borderColor": "#E1E5EA",
    "baseRadius": "0.35rem",
    "baseFontSize": "15",
    "dataframeHeaderBackgroundColor": "#F5F7F9",
    "redColor": UP,
    "greenColor": DOWN,
}

UNKNOWN = "#B4BBC5"
OTHER = "#D5DAE1"

# Ten colours that stay apart in print and for most eyes; names take them in alphabetical order.
SERIES = (
    "#1F4E79",
    "#D98E4A",
    "#2A9D8F",
    "#7D5BA6",
    "#B5594B",
    "#5B8DB8",
    "#8AA15A",
    "#C2A33E",
    "#4A5568",
    "#B07AA1",
)

KINDS = {
    "usage": "#1F4E79",
    "unattributed": "#B5594B",
    "shared": "#7C8AA0",
    "credit": "#6B9E78",
    "out_of_scope": "#C9CFD8",
    "future": "#E1E5EA",
    "idle": "#C2A33E",
    "under_used": "#D98E4A",
    "unmeasured": "#9A8C98",
    "rounding": "#9AA3AE",
}
KIND_TITLES = {
    "usage": "Usage",
    "unattributed": "Unattributed",
    "shared": "Shared",
    "credit": "Credits",
    "out_of_scope": "Not inference",
    "future": "Hours to come",
    "idle": "Idle",
    "under_used": "Under-used",
    "unmeasured": "Unmeasured",
    "rounding": "Below a nano",
}
# What GPUs did, as the own fleet's cost and time are cut. `idle` has causes.
STATES = {
    "productive": "#1F4E79",
    "busy": "#1F4E79",
    "under_used": "#D98E4A",
    "idle": "#C2A33E",
    "no_traffic": "#C2A33E",
    "starting": "#8AA15A",
    "stopping": "#B9C99A",
    "not_requested": "#E0CF8F",
    "not_in_cluster": "#EADFB8",
    "unmeasured": "#9A8C98",
    "shared": "#7C8AA0",
}
STATE_TITLES = {
    "productive": "Productive",
    "busy": "Busy",
    "under_used": "Under-used",
    "idle": "Idle",
    "no_traffic": "No traffic",
    "starting": "Starting",
    "stopping": "Stopping",
    "not_requested": "Not requested",
    "not_in_cluster": "Not in cluster",
    "unmeasured": "Unmeasured",
    "shared": "Shared",
}
LINE_CLASS_TITLES = {
    "model_api": "Model API",
    "accelerator": "GPU machines",
    "other_compute": "Other compute",
    "storage": "Storage",
    "network": "Network",
    "control_plane": "Control plane",
    "commitment": "Commitments",
    "support_tax": "Support and tax",
    "credit": "Credits",
    "discount": "Discounts",
    "in_scope_other": "Other, in scope",
    "out_of_scope": "Not inference",
}
TOKEN_CLASSES = {
    "uncached_input": "#1F4E79",
    "cache_read": "#A9CBD0",
    "cache_write_5m": "#2A9D8F",
    "cache_write_1h": "#17695F",
    "output": "#D98E4A",
}
CLASS_TITLES = {
    "uncached_input": "Uncached input",
    "cache_read": "Cache read",
    "cache_write_5m": "Cache write, 5 min",
    "cache_write_1h": "Cache write, 1 h",
    "cache_write": "Cache write",
    "output": "Output",
}
GOOD, BAD, NEITHER = "#4C8C6B", "#B5594B", "#C2A33E"


def colours(names: Iterable[str | None]) -> dict[str | None, str]:
    """A colour for each name: the same on every page and under every filter, as `names` is everything there is."""
    known = sorted({name for name in names if isinstance(name, str)})
    found: dict[str | None, str] = {name: SERIES[number % len(SERIES)] for number, name in enumerate(known)}
    return {**found, None: UNKNOWN}


def lighter(colour: str, share: float) -> str:
    """The colour mixed with white."""
    parts = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * share):02X}" for part in parts)
