"""docker-compose.yml holds to the Compose specification, and what it starts is there. No engine is needed."""

import re
import shutil
import subprocess
from graphlib import TopologicalSorter

import pytest
import yaml
from sqlalchemy import make_url
from typer.testing import CliRunner

from inferledger import config
from inferledger.cli import app
from tests import needs
from tests.repository import tracked

SERVICE_KEYS = {
    "annotations", "blkio_config", "build", "cap_add", "cap_drop", "cgroup", "cgroup_parent", "command", "configs",
    "container_name", "cpu_count", "cpu_percent", "cpu_period", "cpu_quota", "cpu_rt_period", "cpu_rt_runtime",
    "cpu_shares", "cpus", "cpuset", "depends_on", "deploy", "develop", "device_cgroup_rules", "devices", "dns",
    "dns_opt", "dns_search", "domainname", "entrypoint", "env_file", "environment", "expose", "extends",
    "external_links", "extra_hosts", "gpus", "group_add", "healthcheck", "hostname", "image", "init", "ipc",
    "isolation", "label_file", "labels", "links", "logging", "mac_address", "mem_limit", "mem_reservation",
    "mem_swappiness", "memswap_limit", "network_mode", "networks", "oom_kill_disable", "oom_score_adj", "pid",
    "pids_limit", "platform", "ports", "post_start", "pre_stop", "privileged", "profiles", "provider",
    "pull_policy", "read_only", "restart", "runtime", "scale", "secrets", "security_opt", "shm_size", "stdin_open",
    "stop_grace_period", "stop_signal", "storage_opt", "sysctls", "tmpfs", "tty", "ulimits", "use_api_socket",
    "user", "userns_mode", "uts", "volumes", "volumes_from", "working_dir",
}  # fmt: skip
HEALTHCHECK_KEYS = {"disable", "interval", "retries", "start_interval", "start_period", "test", "timeout"}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
DURATION = re.compile(r"(\d+(us|ms|s|m|h))+")
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(:?[-?+])?([^}]*)\}")
PORT = re.compile(r"(?:(?P<address>[\d.]+):)?(?P<host>\d+):(?P<container>\d+)(?:/(tcp|udp))?")
IMAGE = re.compile(r"(?:[a-z0-9._-]+/)?[a-z0-9._-]+:(?P<tag>[\w.-]+)")

TEXT = (needs.ROOT / "docker-compose.yml").read_text()


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load(TEXT)


@pytest.fixture(scope="module")
def services(compose):
    return compose["services"]


def with_defaults(value: str) -> str:
    return VARIABLE.sub(lambda found: found[3] if found[2] in {"-", ":-"} else "set", value)


def ends(service) -> bool:
    return service.get("restart") == "no"


def is_ours(service) -> bool:
    return service["image"].startswith("inferledger:")


def test_every_key_is_known(compose, services):
    assert {key for key in compose if not key.startswith("x-")} <= {"name", "services", "volumes", "networks"}
    unknown = {name: set(service) - SERVICE_KEYS for name, service in services.items()}
    assert {name: keys for name, keys in unknown.items() if keys} == {}


def test_the_services_the_documentation_promises_are_there(services):
    assert {"pipeline", "dashboard", "prometheus", "postgres", "store"} <= set(services)


def test_images_are_pinned_to_a_tag(services):
    for name, service in services.items():
        image = IMAGE.fullmatch(service["image"])
        assert image, name
        assert image["tag"] != "latest", name
        assert (service.get("build") == ".") == is_ours(service), name


def test_services_wait_for_services_that_exist(services):
    for name, service in services.items():
        for target, how in service.get("depends_on", {}).items():
            assert target in services, name
            assert how["condition"] in CONDITIONS, name
            assert how["condition"] != "service_healthy" or "healthcheck" in services[target], (name, target)
            assert (how["condition"] == "service_completed_successfully") == ends(services[target]), (name, target)
    order = TopologicalSorter({name: service.get("depends_on", {}).keys() for name, service in services.items()})
    order.prepare()  # raises where services wait for each other in a circle


def test_whatever_stays_up_has_a_health_check(services):
    for name, service in services.items():
        check = service.get("healthcheck")
        assert (check is not None) != ends(service), name
        if check is None:
            continue
        assert set(check) <= HEALTHCHECK_KEYS, name
        assert check["test"][0] == "CMD", name
        assert len(check["test"]) > 1, name
        assert all(isinstance(word, str) for word in check["test"]), name
        assert isinstance(check["retries"], int), name
        assert all(DURATION.fullmatch(value) for key, value in check.items() if key not in {"test", "retries"}), name


def test_volumes_are_declared_and_mounted_files_exist(compose, services):
    mounted = set()
    for name, service in services.items():
        for volume in service.get("volumes", []):
            source, target, *mode = volume.split(":")
            assert target.startswith("/"), name
            assert mode in ([], ["ro"]), name
            if source.startswith("."):
                assert mode == ["ro"], name
                assert (needs.ROOT / source).exists(), source
            else:
                mounted.add(source)
    assert mounted == set(compose["volumes"])


def test_no_two_services_take_a_port(services):
    taken = []
    for name, service in services.items():
        for port in service.get("ports", []):
            match = PORT.fullmatch(with_defaults(port))
            assert match, (name, port)
            assert match["address"] == "127.0.0.1", f"{name} opens {port} to everyone unless told otherwise"
            taken.append(match["host"])
    assert len(taken) == len(set(taken))
    assert "8501" in taken


def test_our_containers_run_without_rights(services):
    dockerfile = (needs.ROOT / "Dockerfile").read_text()
    uid = re.search(r"useradd --uid (\d+)", dockerfile)
    assert uid
    assert int(uid[1]) > 0
    assert re.findall(r"^USER (\w+)", dockerfile, re.MULTILINE) == ["inferledger"]
    for service in filter(is_ours, services.values()):
        assert service["user"] == f"{uid[1]}:{uid[1]}"
        assert service["cap_drop"] == ["ALL"]


def test_credentials_come_from_the_environment_and_are_documented(services):
    for name, service in services.items():
        for key, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD|SECRET|ACCESS_KEY|TOKEN|WEBHOOK", key):
                assert VARIABLE.fullmatch(value), (name, key)
    used = {match[1] for match in VARIABLE.finditer(TEXT)}
    without_remedy = {match[0] for match in VARIABLE.finditer(TEXT) if match[2] not in {":-", ":?"}}
    assert without_remedy == set()
    documented = dict(re.findall(r"^(\w+)=(.*)$", (needs.ROOT / ".env.example").read_text(), re.MULTILINE))
    assert set(documented) == used
    assert {name for name, value in documented.items() if value} <= {"INFERLEDGER_BIND"}


def test_a_filled_in_env_file_is_never_committed():
    root = needs.git_checkout()
    assert subprocess.run(["git", "check-ignore", "--quiet", ".env"], cwd=root, check=False).returncode == 0


def commands() -> list[list[str]]:
    """The command lines of `inferledger` in the Compose file: what services run, and their health checks."""
    found = []
    for service in filter(is_ours, yaml.safe_load(TEXT)["services"].values()):
        check = service.get("healthcheck", {}).get("test", [])
        found += [service["command"]] + ([check[2:]] if check[1:2] == ["inferledger"] else [])
    return found


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_is_one_the_command_line_has(command):
    # An unknown command or option is refused before --help is looked at.
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0, result.output


def test_the_configuration_loads_and_points_at_services_that_exist(services):
    configuration = config.load(needs.ROOT / "deploy" / "inferledger.yaml")
    operations = make_url(configuration.operations_url)
    assert operations.host == "postgres"
    assert operations.username == services["postgres"]["environment"]["POSTGRES_USER"]
    assert operations.database == services["postgres"]["environment"]["POSTGRES_DB"]
    assert configuration.sources
    for source in configuration.sources:
        assert source.endpoint_url == "http://store:9000"
        assert source.location.startswith("s3://evidence/")
    assert "store/evidence" in services["bucket"]["command"][0]


def test_the_entry_point_is_the_command():
    dockerfile = (needs.ROOT / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["inferledger"]' in dockerfile


def test_the_image_is_built_from_every_room_and_from_nothing_secret():
    let_in = {line[1:] for line in (needs.ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert let_in == {*tracked.ROOMS, "LICENSE", "README.md", "pyproject.toml", "requirements.lock"}


@pytest.mark.prometheus
def test_prometheus_takes_its_configuration():
    promtool = needs.promtool()
    config = needs.ROOT / "deploy" / "prometheus.yml"
    checked = subprocess.run([promtool, "check", "config", config], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    for targets in (needs.ROOT / "deploy" / "targets").glob("*.yml"):
        assert isinstance(yaml.safe_load(targets.read_text()), list)


def has_compose() -> bool:
    docker = shutil.which("docker")
    return (
        docker is not None
        and subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode == 0
    )


# Defined only where Docker's Compose is installed: it checks the same file as the tests above, once more.
if has_compose():

    def test_docker_compose_takes_the_file():
        names = re.findall(r"^(\w+)=", (needs.ROOT / ".env.example").read_text(), re.MULTILINE)
        environment = dict.fromkeys(names, "127.0.0.1") | {"PATH": "/usr/local/bin:/usr/bin:/bin"}
        command = ["docker", "compose", "config", "--quiet"]
        done = subprocess.run(command, cwd=needs.ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
