"""Certificates for tests of TLS, made by the program openssl: an authority, and what it signs."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

# Wide apart from now, so that no clock matters.
LONG_AGO = ("20000101000000Z", "20010101000000Z")
FOR_LONG = ("20000101000000Z", "20990101000000Z")

_CONFIG = """
[ca]
default_ca = here
[here]
database = {directory}/index
new_certs_dir = {directory}
serial = {directory}/serial
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
x509_extensions = leaf
[any]
commonName = supplied
[leaf]
basicConstraints = critical, CA:FALSE
[req]
distinguished_name = empty
[empty]
"""


@dataclass(frozen=True)
class Authority:
    """A certificate authority whose files lie in `directory`, readable by the servers' user."""

    directory: Path

    @property
    def certificate(self) -> Path:
        """The authority's own certificate, in PEM."""
        return self.directory / "ca.pem"

    @classmethod
    def make(cls, directory: Path) -> Authority:
        """Make a new one."""
        directory.mkdir(mode=0o755)
        directory.chmod(0o755)
        (directory / "config").write_text(_CONFIG.format(directory=directory))
        (directory / "index").touch()
        (directory / "serial").write_text("01\n")
        made = cls(directory)
        made._openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", "ca.key", "-out", "ca.pem", "-subj", f"/CN=authority {directory.name}"),
            *("-days", "20000", "-addext", "keyUsage = critical, keyCertSign"),
        )
        return made

    def issue(self, name: str, hosts: str, times: tuple[str, str] = FOR_LONG) -> tuple[Path, Path]:
        """Certificate and key of one that is called `name`; `hosts` as in "DNS:localhost,IP:127.0.0.1"."""
        certificate, key = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        self._openssl(
            *("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", str(key), "-out", f"{name}.csr", "-subj", f"/CN={name}", "-config", "config"),
            *("-addext", f"subjectAltName = {hosts}"),
        )
        self._openssl(
            *("ca", "-batch", "-config", "config", "-cert", "ca.pem", "-keyfile", "ca.key", "-notext"),
            *("-in", f"{name}.csr", "-out", str(certificate), "-startdate", times[0], "-enddate", times[1]),
        )
        # A private server runs as another user; nobody else is on its machine's loopback in a test.
        key.chmod(0o644)
        return certificate, key

    def _openssl(self, *arguments: str) -> None:
        done = subprocess.run(
            ["openssl", *arguments], cwd=self.directory, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
