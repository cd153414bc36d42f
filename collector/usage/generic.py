from typing import Literal
from collector.source import SourceSettings, Kind
class G(SourceSettings):
    kind: Literal["generic"]
KIND = Kind("generic", G, lambda s: None)
