"""The server itself: TLS by file, a port that is taken, settings that are refused before anything listens, the made-up shop."""

from __future__ import annotations

import datetime
import ipaddress
import json
import socket
import ssl
import threading
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import InvalidInput, StorageError
from manyarms.service import create_app, demo, make_config
from manyarms.service.running import address_of, bound, check_tls, make_server, run
from manyarms.service.runtime import open_service
from service.server import Server


def certificate(folder: Path, name: str = "server") -> tuple[Path, Path]:
    """A certificate for this machine that signs itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    paths[1].chmod(0o600)
    return paths


def test_https(tmp_path: Path) -> None:
    public, private = certificate(tmp_path)
    files = {"server": {"tls_certificate": str(public), "tls_key": str(private)}}
    with (
        ma.live.open(tmp_path / "live.db", _agent(), background=False) as live,
        bound("127.0.0.1", 0) as listening,
    ):
        config = make_config(files, {"store": "here", "shutdown": 1.0})
        check_tls(config)
        server = make_server(create_app(live, config), config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            address = address_of(config, listening)
            assert address.startswith("https://127.0.0.1:")
            trusted = ssl.create_default_context(cafile=str(public))
            with urllib.request.urlopen(f"{address}/healthz", context=trusted, timeout=60.0) as answer:
                assert json.load(answer)["status"] == "ok"
        finally:
            server.should_exit = True
            thread.join(60.0)
        assert not thread.is_alive()


def _agent() -> ma.Agent:
    return ma.LinTS(ma.ActionPrior(5, np.zeros(2), np.eye(2)), seed=0)


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    public, _ = certificate(tmp_path, "one")
    _, other = certificate(tmp_path, "two")
    config = make_config({}, {"store": "here", "tls_certificate": public, "tls_key": other})
    with pytest.raises(InvalidInput, match=r"server\.tls_certificate"):
        check_tls(config)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken, ma.live.open(tmp_path / "live.db", _agent(), background=False) as live:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        config = make_config({}, {"store": "here", "port": taken.getsockname()[1]})
        with pytest.raises(StorageError, match=r"cannot listen on 127\.0\.0\.1"):
            run(create_app(live, config), config)


def test_a_folder_that_holds_no_agent(tmp_path: Path) -> None:
    ma.logs.Actions(["a", "b"]).save(tmp_path / "ids")
    config = make_config({}, {"store": str(tmp_path / "live.db"), "agent": tmp_path / "ids"})
    with pytest.raises(ma.ManyArmsError, match="expected an agent or a policy"):
        open_service(config)
    assert not (tmp_path / "live.db").exists()


def test_sigterm_answers_and_goes_on_where_it_was(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        told = server.ask("POST", "/v1/decide", {"context": [0.1, 0.2, 0.3], "id": "kept"}).json()
        assert server.stop() == 0
        server.restart()
        again = server.ask("POST", "/v1/decide", {"context": [0.1, 0.2, 0.3], "id": "kept"}).json()
        assert again["actions"] == told["actions"] and again["version"] == told["version"]


def test_the_made_up_shop_has_history_and_visitors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "ITEMS", 60)
    monkeypatch.setattr(demo, "HISTORY", 30)
    shop = demo.Shop()
    demo.make_store(tmp_path / "shop.db", shop)
    with ma.live.open(tmp_path / "shop.db", background=False) as live:
        live.learn()
        assert live.status()["settled"] == 30 and live.deployment.holdout == 0.1
        assert set(live.report().body["values"]) <= {"shop", "anything"}
        visitor = shop.visitor()
        assert shop.clicks(visitor, str(live.decide(visitor).action)) in (1.0, None)
