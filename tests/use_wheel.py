"""What scripts/check_wheel runs where the wheel is all that there is of muc: the built-in model and a network, from arrays to reports."""
import pathlib
import re
import tempfile

import muc
import numpy

COMMAND, PLAN = "find fire in the lab", "goto lab; scan fire"
GRAPH = """graph small
tensor x = input f32 [2, 4]
tensor w = const f32 [3, 4] values 0.5, -1.0, 0.25, 2.0, 1.5, 0.125, -0.5, 0.75, -2.0, 1.0, 0.5, -0.25
node y f32 [2, 3] = linear x, w
output y
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        with muc.open() as model:
            assert model.say(COMMAND)["text"] == PLAN
            model.compile(work / "rescue.utp")
            model.compile(work / "rescue", target="mcu", machine="nrf52840")
        with muc.open(work / "rescue.utp") as program:
            assert program.say(COMMAND)["text"] == PLAN
        site = pathlib.Path(muc.__file__).parent
        assert muc.verify(work / "rescue.utp", site / "share/muc/models/rescue")["exact"] is True
        assert muc.report(work / "rescue", save=work / "rescue.html")["arena_bytes"] > 100000
        (work / "small.graph").write_text(GRAPH)
        x = numpy.arange(8, dtype=numpy.float32).reshape(2, 4) / 4 - 1
        w = numpy.array([0.5, -1, 0.25, 2, 1.5, 0.125, -0.5, 0.75, -2, 1, 0.5, -0.25], numpy.float32).reshape(3, 4)
        with muc.open(work / "small.graph") as network:
            assert numpy.allclose(network.run([x])["y"], x @ w.T, atol=1e-6)
            network.compile(work / "small", target="mcu", name="small")
        try:
            muc.open(work / "none.onnx")
        except muc.IOFailure as problem:
            assert "none.onnx" in str(problem)
        else:
            raise AssertionError("a missing file was opened")
    mapped = {line.split()[-1] for line in open("/proc/self/maps") if "/lib" in line}
    ours = {path for path in mapped if path.startswith(str(site))}
    assert any("libmuc.so" in path for path in ours) and any("libjansson" in path for path in ours), ours
    missing = [part["name"] for part in muc.doctor()["parts"] if not part["found"]]
    assert not missing, missing
    strange = [path for path in mapped - ours if re.search("muc|jansson|zip|png|protobuf", path)]
    assert not strange, strange
    print("use_wheel: muc", site, "does all of it")


main()
