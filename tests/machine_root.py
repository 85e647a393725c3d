"""A machine in a folder, for tests of an installation: a Debian made by debootstrap, in which commands run with chroot.

The registries of Debian and Python are reached as on this machine. What lies on servers that nobody here reaches, or that have nothing
yet, comes from a server of the test over HTTPS, which the machine in the folder takes for the real one (`/etc/hosts`, a certificate
of its own): rustup's installer, a distribution of this machine's rustc that rustup installs, and the page of a release.
"""

import contextlib
import hashlib
import http.server
import io
import os
import pathlib
import shlex
import shutil
import ssl
import subprocess
import tarfile
import threading

# The loopback address of the server in the root, with the port that https:// means.
ADDRESS = "127.88.0.40"
HOSTS = ("sh.rustup.rs", "static.rust-lang.org", "github.com")
SUITE = "trixie"
RELEASE_PAGE = "/stratoscope/stratoscope/releases/expanded_assets/v0.1.0"
MACHINE = f"{os.uname().machine}-unknown-linux-gnu"


def run(*command, **options):
    finished = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert finished.returncode == 0, (command, finished.stdout[-3000:], finished.stderr[-3000:])
    return finished.stdout


class Root:
    """A Debian in a folder."""

    def __init__(self, folder, base):
        run("cp", "-a", "--reflink=auto", base, folder)
        self.folder = pathlib.Path(folder)
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
                            "DEBIAN_FRONTEND": "noninteractive", "STRATOSCOPE_DEVICE": "cpu"}
        self.mounted = []

    def bind(self, source, target):
        """Shows a folder of this machine at a path of the root."""
        place = self.folder / target.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        run("mount", "--bind", source, place)
        self.mounted.append(place)

    def __enter__(self):
        for name in ("proc", "dev"):
            run("mount", "--rbind", f"/{name}", self.folder / name)
            run("mount", "--make-rslave", self.folder / name)
            self.mounted.append(self.folder / name)
        shutil.copy("/etc/resolv.conf", self.folder / "etc/resolv.conf")
        return self

    def __exit__(self, *_):
        for place in reversed(self.mounted):
            subprocess.run(["umount", "--recursive", "--lazy", place], capture_output=True)

    def result(self, script, user="root", cwd="/", shell="/bin/sh", more=None, timeout=900):
        """Runs a script in the root, as a user, and returns what became of it."""
        command = ["chroot", f"--userspec={user}", self.folder, shell, "-c", f"cd {shlex.quote(cwd)} && {script}"]
        return subprocess.run([str(word) for word in command], env=self.environment | (more or {}), capture_output=True, text=True,
                              timeout=timeout, umask=0o022, stdin=subprocess.DEVNULL)

    def run(self, script, **options):
        finished = self.result(script, **options)
        assert finished.returncode == 0, f"$ {script}\n{finished.stdout[-3000:]}\n{finished.stderr[-3000:]}"
        return finished.stdout + finished.stderr

    def trust(self, certificate):
        """Takes the servers of the test for those of `HOSTS`, and trusts what this machine trusts."""
        with open(self.folder / "etc/hosts", "a") as hosts:
            hosts.write(f"127.0.0.1 localhost\n{ADDRESS} {' '.join(HOSTS)}\n")
        known = self.folder / "usr/local/share/ca-certificates"
        known.mkdir(parents=True, exist_ok=True)
        texts = pathlib.Path(ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt").read_text()
        texts += certificate.read_text()
        end = "-----END CERTIFICATE-----\n"
        for number, text in enumerate(filter(str.strip, texts.split(end))):
            (known / f"of-the-test-{number}.crt").write_text(text[text.index("-----BEGIN"):] + end)
        # pip looks into the system's store from version 24.2 on; this names it to every version.
        self.environment["PIP_CERT"] = "/etc/ssl/certs/ca-certificates.crt"
        # Fonts and documentation of packages are read by nobody here.
        (self.folder / "etc/dpkg/dpkg.cfg.d").mkdir(parents=True, exist_ok=True)
        (self.folder / "etc/dpkg/dpkg.cfg.d/test").write_text("force-unsafe-io\npath-exclude=/usr/share/doc/*\npath-exclude=/usr/share/man/*\n")


def debian(folder, suite=SUITE):
    """A small Debian in a folder."""
    run("debootstrap", "--variant=minbase", suite, folder, timeout=1200)
    return folder


# ---- servers ---------------------------------------------------------------------------------------------------------

# What https://sh.rustup.rs does, without its questions about the system: it fetches rustup-init and runs it.
INSTALLER = f"""#!/bin/sh
set -e
folder=$(mktemp -d)
curl --proto '=https' --tlsv1.2 -sSf https://static.rust-lang.org/rustup/dist/{MACHINE}/rustup-init -o "$folder/rustup-init"
chmod +x "$folder/rustup-init"
"$folder/rustup-init" "$@" < /dev/null
"""


# What rustup notes beside a compiler that it has installed: the files of each component. The last one is for all machines.
COMPONENTS = {"rustc": f"rustc-{MACHINE}", "rust-std": f"rust-std-{MACHINE}", "cargo": f"cargo-{MACHINE}", "rust-src": "rust-src"}


def component(path, name, sysroot):
    """Writes the archive of a component of Rust, as rustup reads it."""
    # The folder in the archive is `rustc`, but `rust-std-x86_64-…`.
    top, inner = path.name.removesuffix(".tar.gz"), COMPONENTS[name] if name == "rust-std" else name
    noted = (sysroot / f"lib/rustlib/manifest-{COMPONENTS[name]}").read_text().splitlines()
    files = [line.removeprefix("file:") for line in noted if line.startswith("file:") and "/share/doc/" not in f"/{line[5:]}"]
    folders = [line.removeprefix("dir:") for line in noted if line.startswith("dir:")]
    files += [str(file.relative_to(sysroot)) for folder in folders for file in (sysroot / folder).rglob("*") if file.is_file()]
    parents = {str(parent) for file in files for parent in pathlib.PurePath(file).parents} - {"."}
    texts = {f"{top}/rust-installer-version": "3\n", f"{top}/components": f"{inner}\n",
             f"{top}/{inner}/manifest.in": "".join(f"file:{file}\n" for file in files)}
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for folder in (top, f"{top}/{inner}"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for name_in_archive, text in texts.items():
            entry = tarfile.TarInfo(name_in_archive)
            entry.size, entry.mode = len(text.encode()), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
        for file in sorted(parents | set(files)):
            archive.add(sysroot / file, f"{top}/{inner}/{file}", recursive=False)


def distribution(folder):
    """Rust's server for this machine's rustc: the components of the profile `minimal`, rust-src, and what names them."""
    sysroot = pathlib.Path(run("rustc", "--print", "sysroot").strip())
    line = run(sysroot / "bin/rustc", "--version").strip().removeprefix("rustc ")
    version = line.split()[0]
    (folder / "dist").mkdir(parents=True)
    manifest = ['manifest-version = "2"', 'date = "2026-01-01"', "[renames]", "[profiles]", 'minimal = ["rustc", "rust-std", "cargo"]']
    whole = [f"[pkg.rust]\nversion = '{line}'\n[pkg.rust.target.{MACHINE}]\navailable = true"]
    for name in COMPONENTS:
        path = folder / "dist" / f"{name}-{version}-{MACHINE}.tar.gz"
        component(path, name, sysroot)
        target = "*" if name == "rust-src" else MACHINE
        manifest.append(f"[pkg.{name}]\nversion = '{line}'\n[pkg.{name}.target.'{target}']\navailable = true\n"
                        f"url = 'https://static.rust-lang.org/dist/{path.name}'\nhash = '{hashlib.sha256(path.read_bytes()).hexdigest()}'")
        kind = "extensions" if name == "rust-src" else "components"
        whole.append(f"[[pkg.rust.target.{MACHINE}.{kind}]]\npkg = '{name}'\ntarget = '{target}'")
    named = folder / "dist" / f"channel-rust-{version}.toml"
    named.write_text("\n".join(manifest + whole) + "\n")
    named.with_name(named.name + ".sha256").write_text(f"{hashlib.sha256(named.read_bytes()).hexdigest()}  {named.name}\n")
    init = folder / "rustup" / "dist" / MACHINE / "rustup-init"
    init.parent.mkdir(parents=True)
    shutil.copy(shutil.which("rustup"), init)


def certificates(folder):
    """An authority to trust; the certificate of the servers, which it signed, and its key."""
    authority, signed, request = (folder / f"{name}.crt" for name in ("authority", "server", "request"))
    keys = folder / "authority.key", folder / "server.key"
    new = ("openssl", "req", "-newkey", "rsa:2048", "-nodes")
    run(*new, "-x509", "-days", "2", "-subj", "/CN=authority of a test", "-out", authority, "-keyout", keys[0])
    run(*new, "-subj", "/CN=servers of a test", "-out", request, "-keyout", keys[1])
    (folder / "names").write_text(f"subjectAltName={','.join(f'DNS:{host}' for host in HOSTS)}\nbasicConstraints=CA:FALSE\n")
    run("openssl", "x509", "-req", "-days", "2", "-in", request, "-CA", authority, "-CAkey", keys[0], "-CAcreateserial",
        "-extfile", folder / "names", "-out", signed)
    return authority, signed, keys[1]


@contextlib.contextmanager
def servers(folder, wheel):
    """Serves Rust and a release with this wheel over HTTPS; yields the certificate to trust."""
    distribution(folder)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *_):
            pass

        def do_GET(self):
            if self.headers["Host"] == "sh.rustup.rs":
                return self.answer(INSTALLER.encode(), "text/plain")
            if self.path == RELEASE_PAGE:
                return self.answer(f'<a href="/download/{wheel.name}">{wheel.name}</a>'.encode(), "text/html")
            if self.path == f"/download/{wheel.name}":
                return self.answer(wheel.read_bytes(), "application/octet-stream")
            return super().do_GET()

        def answer(self, body, kind):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    trusted, signed, key = certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed, key)
    server = http.server.ThreadingHTTPServer((ADDRESS, 443), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield trusted
    finally:
        server.shutdown()
        server.server_close()
