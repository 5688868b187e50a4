"""What is measured: nothing in between, nginx, others, what is bare of all, and Warmline."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.relaying.processes import Process, cores, free_port

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".cache" / "peers"
PACED, SLOW = "/u/paced", "/u/slow"
"""The prefixes of the upstream's ports that answer at a pace."""
GAP, SLOW_GAP = 0.010, 0.200

_WANTED = {
    "starlette": ("starlette==1.10.0", "httpx==0.28.1", "uvicorn==0.54.0", "httptools==0.9.0",
                  "uvloop==0.23.0"),
    "litellm": ("litellm[proxy]==1.108.7",),
}  # fmt: skip


_MAIN = "from app.cli import main; main()"


@dataclass
class Peer:
    name: str
    process: Process | None
    ports: Callable[[str], int]
    """The port for a path."""
    paces: bool = True
    """It knows the paths of the paced upstreams."""

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()


@dataclass
class Upstream:
    process: Process
    burst: int
    paced: int
    slow: int

    def port(self, path: str) -> int:
        if path.startswith(PACED):
            return self.paced
        return self.slow if path.startswith(SLOW) else self.burst


def upstream(scratch: Path) -> Upstream:
    burst, paced, slow = free_port(), free_port(), free_port()
    process = Process(
        [sys.executable, "-m", "benchmarks.relaying.upstream", f"{burst}=0", f"{paced}={GAP}",
         f"{slow}={SLOW_GAP}"],
        cores()[1], scratch / "upstream.log", {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    process.wait_for(slow)
    return Upstream(process, burst, paced, slow)


def direct(up: Upstream) -> Peer:
    return Peer("direct", None, up.port)


_NGINX = """
worker_processes 1;
daemon off;
pid {scratch}/nginx.pid;
error_log {scratch}/nginx-errors.log;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_max_body_size 0;
  client_body_temp_path {scratch}/nginx-bodies;
  proxy_temp_path {scratch}/nginx-proxied;
  fastcgi_temp_path {scratch}/nginx-1; uwsgi_temp_path {scratch}/nginx-2;
  scgi_temp_path {scratch}/nginx-3;
  keepalive_requests 1000000;
  keepalive_timeout 600;
{upstreams}
  server {{
    listen 127.0.0.1:{port} backlog=2048;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_buffering off;
    proxy_request_buffering off;
{locations}
  }}
}}
"""


def nginx(up: Upstream, scratch: Path) -> Peer | None:
    """None where it is not installed."""
    program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if program is None:
        return None
    port = free_port()
    backs = {"/": up.burst, PACED: up.paced, SLOW: up.slow}
    upstreams = "".join(
        f"  upstream p{back} {{ server 127.0.0.1:{back}; keepalive 2048; "
        "keepalive_requests 1000000; }\n"
        for back in backs.values()
    )
    locations = "".join(
        f"    location {path} {{ proxy_pass http://p{back}; }}\n" for path, back in backs.items()
    )
    config = scratch / "nginx.conf"
    config.write_text(
        _NGINX.format(scratch=scratch, port=port, upstreams=upstreams, locations=locations)
    )
    process = Process(
        [program, "-c", str(config), "-p", str(scratch)], cores()[0], scratch / "nginx.log"
    )
    process.wait_for(port)
    return Peer("nginx", process, lambda _: port)


def install() -> None:
    """Make the environments of the peers that are written in Python, with pinned versions."""
    for name, wanted in _WANTED.items():
        home = PEERS / name
        if not (home / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(home / "bin" / "pip"), "install", "--quiet", *wanted], check=True)


def starlette(up: Upstream, scratch: Path) -> Peer | None:
    python = PEERS / "starlette" / "bin" / "python"
    if not python.exists():
        return None
    return _uvicorn("Starlette + httpx", python, "starlette_httpx:app", up, scratch)


def bare(up: Upstream, scratch: Path) -> Peer:
    """In the project's own environment."""
    options = ["--http", "httptools", "--loop", "uvloop", "--lifespan", "off", "--ws", "none"]
    return _uvicorn("bare", Path(sys.executable), "bare:app", up, scratch, *options)


def _uvicorn(name: str, python: Path, app: str, up: Upstream, scratch: Path, *options: str) -> Peer:
    port = free_port()
    process = Process(
        [str(python), "-m", "uvicorn", "--app-dir", str(Path(__file__).parent), "--port", str(port),
         "--no-access-log", "--log-level", "warning", *options, app],
        cores()[0], scratch / f"{app}.log",
        {"UPSTREAM": f"http://127.0.0.1:{up.burst}", "PACED": f"http://127.0.0.1:{up.paced}"},
    )  # fmt: skip
    process.wait_for(port)
    return Peer(name, process, lambda _: port)


def litellm(up: Upstream, scratch: Path) -> Peer | None:
    program = PEERS / "litellm" / "bin" / "litellm"
    if not program.exists():
        return None
    port = free_port()
    config = scratch / "litellm.yaml"
    model = {"model": "openai/bench", "api_base": f"http://127.0.0.1:{up.burst}/v1", "api_key": "k"}
    config.write_text(
        json.dumps({"model_list": [{"model_name": "bench", "litellm_params": model}]})
    )
    process = Process(
        [str(program), "--config", str(config), "--port", str(port), "--host", "127.0.0.1",
         "--num_workers", "1", "--telemetry", "False"],
        cores()[0], scratch / "litellm.log",
        {"LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": str(scratch),
         "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"},
    )  # fmt: skip
    process.wait_for(port, within=120)
    return Peer("LiteLLM", process, lambda _: port, paces=False)


def warmline(up: Upstream, scratch: Path, name: str = "Warmline", **settings: str) -> Peer:
    """The whole gateway as users start it, with its ledger, which was there before: a first start
    makes the schema, and keeps what it needs for that until the next one."""
    port = free_port()
    home = scratch / f"warmline-{port}"
    home.mkdir()
    config = home / "warmline.toml"
    lines = [
        f"port = {port}",
        f'upstream = "http://127.0.0.1:{up.burst}/v1"',
        f'database = "{home}/ledger.sqlite3"',
        'log_level = "warning"',
        "max_connections = 2048",
        *(f"{key} = {value}" for key, value in settings.items()),
        f'[upstreams.paced]\nbase_url = "http://127.0.0.1:{up.paced}/v1"',
        f'[upstreams.slow]\nbase_url = "http://127.0.0.1:{up.slow}/v1"',
    ]
    config.write_text("\n".join(lines) + "\n")
    run, env = [sys.executable, "-c", _MAIN], {"PYTHONPATH": str(ROOT)}
    subprocess.run(
        [*run, "db", "upgrade", "--config", str(config)],
        env=os.environ | env, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    process = Process([*run, "serve", "--config", str(config)], cores()[0], home / "log", env)
    process.wait_for(port)
    return Peer(name, process, lambda _: port)
