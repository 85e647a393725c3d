"""What the debugger costs: the time of cells while it is off, while it is on, and while a breakpoint is set somewhere.

The three states take turns in one kernel. The compiler that the kernel keeps ready has the arguments of the state before, so
that the first two cells of a turn are not counted.
"""
import statistics
import time

from programs import log

CELLS = {
    "trivial cell": "let x{n} = {n} + 1; // {now}",
    "ML cell": "let y{n} = x.clone().matmul(y.clone()).sum_dim(1); println!(\"{{:?}}\", y{n}.dims()); // {now}",
    "`compile!`, `fit!`, `predict`": """let model{n} = Sequential([Dense(8).input_shape((4,)), Dense(1)])?; // {now}
compile!(model{n}, optimizer = Adam::new(0.01), loss = "mse")?;
let data{n} = make_regression(64, 4, 1)?;
let history{n} = fit!(model{n}, data{n}, epochs = 1, batch_size = 64, verbose = false)?;
model{n}.predict([[1.0, 2.0, 3.0, {n}.0]])?.rows.len()""",
}
FIRST = ("use stratoscope::burn::tensor::{Device, Tensor};\n"
         "let x = Tensor::<2>::ones([64, 64], &Device::flex()); let y = x.clone().matmul(x.clone());")
NOT_COUNTED = 2


def measure(session, turns, cells):
    """Prints a table: seconds of each cell in each state. `session`: makes a session with a kernel."""
    session = session()
    asked = 0

    def ask(command, **arguments):
        nonlocal asked
        asked += 1
        client = session.client
        content = {"seq": asked, "type": "request", "command": command, "arguments": arguments}
        message = client.session.msg("debug_request", content)
        client.control_channel.send(message)
        while True:
            reply = client.get_control_msg(timeout=120)
            if reply["parent_header"]["msg_id"] == message["header"]["msg_id"]:
                break
        if not reply["content"]["success"]:
            raise RuntimeError(reply["content"])
        return reply["content"]["body"]

    def enter(state):
        if state == "debugger off":
            ask("disconnect")
            return
        ask("initialize", clientID="bench")
        ask("attach")
        path = ask("dumpCell", code="let behind = 1;")["sourcePath"]
        wanted = [{"line": 1}] if state == "with a breakpoint" else []
        for each in ask("setBreakpoints", source={"path": path}, breakpoints=wanted)["breakpoints"]:
            if not each["verified"]:
                raise RuntimeError(each["message"])

    states = ("debugger off", "on, without breakpoints", "with a breakpoint")
    seconds = {cell: {state: [] for state in states} for cell in CELLS}
    number = 0
    try:
        session.kernel_info()
        session.run(FIRST)
        for turn in range(turns):
            for state in states:
                enter(state)
                for name, code in CELLS.items():
                    for each in range(cells + NOT_COUNTED):
                        number += 1
                        took = session.run(code.format(n=number, now=time.time_ns()))
                        if each >= NOT_COUNTED:
                            seconds[name][state].append(took)
            log(f"turn {turn + 1} of {turns}")
    finally:
        session.close()
    print("| | " + " | ".join(states) + " | ratio |\n| --- |" + " --- |" * (len(states) + 1))
    for name, by_state in seconds.items():
        middle = [statistics.median(by_state[state]) for state in states]
        print(f"| {name} | " + " | ".join(f"{each:.3f} s" for each in middle) + f" | {middle[-1] / middle[0]:.2f} |")
