"""TFLite networks that keep something from run to run: through the reference and through C, run
after run, against NumPy; and what files may do wrong."""
import pathlib
import sys
import tempfile

from files import MALFORMED, UNSUPPORTED, USAGE, muc, run_tests

try:
    import numpy as np

    from tflite_files import Model, clamp, logistic, multiplier, scaled, tanh
except ImportError as missing:
    print(f"1..0 # SKIP {missing}")
    sys.exit(0)

RNG = np.random.default_rng(11)
RUNS = 5
BYTE, SHORT = (-128, 127), (-32768, 32767)


def run_all(model, arrays, machines=("host",)):
    """Outputs of each run of the reference, and of C for each machine; and the last folder's C."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        file, given, got = folder / "net.tflite", folder / "in.npz", folder / "out.npz"
        file.write_bytes(model.bytes())
        np.savez(given, *arrays)
        muc("run", file, "--input", given, "--output", got)
        results = [("reference", list(np.load(got).values()))]
        for machine in machines:
            code = folder / machine
            muc("compile", file, "--target", "mcu", "--machine", machine, "-o", code)
            muc("run", code, "--input", given, "--output", got)
            results.append((machine, list(np.load(got).values())))
        if not machines:
            return results, ""
        muc("verify", code, file)
        return results, (code / "net.c").read_text()


def check(model, arrays, expected, machines=("host",), exact=True):
    results, text = run_all(model, arrays, machines)
    for which, found in results:
        assert len(found) == len(expected), (which, len(found))
        for a, b in zip(found, expected):
            assert a.shape == b.shape and a.dtype == b.dtype, (which, a.shape, b.shape, a.dtype)
            if exact:
                wrong = np.argwhere(a != b)
                assert not len(wrong), (which, f"{len(wrong)} of {a.size}, first {wrong[0]}")
            else:
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5, err_msg=which)
    return text


def reals(*shape, size=1.0):
    return (RNG.normal(0, size, shape)).astype(np.float32)


def bytes_of(*shape, low=-127, high=128):
    return RNG.integers(low, high, shape).astype(np.int8)


# ---- SVDF ----

def svdf_model(x, feature, time, bias, rank, units, activation, kind="float32", scales=None):
    """scales: of x, feature, time, state, output; zero points of x, state, output."""
    model = Model()
    batch, filters, memory = x.shape[1], len(feature), time.shape[1]
    s, z = scales if scales else ([None] * 5, [0] * 3)
    small = "float32" if kind == "float32" else "int8"
    a = model.input("x", x.shape[1:], small, scale=s[0], zero=z[0])
    w = model.constant("feature", feature, scale=s[1])
    t = model.constant("time", time, scale=s[2])
    b = None if bias is None else model.constant("bias", bias,
                                                 scale=s[3] * s[2] if scales else None)
    state = model.add("state", (batch, filters * memory), kind, scale=s[3], zero=z[1],
                      variable=True)
    y = model.add("y", (batch, units), small, scale=s[4], zero=z[2])
    model.op("SVDF", [a, w, t, b, state], y, 6, [(0, rank), (1, activation)],
             version=3 if scales else 1)
    model.outputs = [y]
    return model


def svdf(x, feature, time, bias, rank, state_of, unit_of, zero_x, zero):
    """Each run's result: x is shifted into the state of [batch, filters, memory]."""
    filters, memory = time.shape
    state = np.full((x.shape[1], filters, memory), zero, np.float64 if state_of is None else np.int64)
    out = []
    for one in x:
        values = (one.astype(state.dtype) - zero_x) @ feature.astype(state.dtype).T
        state = np.roll(state, -1, 2)
        state[:, :, -1] = values if state_of is None else state_of(values)
        sums = ((state - zero) * time.astype(state.dtype)).sum(2)
        sums = sums.reshape(len(sums), -1, rank).sum(2) + (0 if bias is None else bias)
        out.append(unit_of(sums))
    return np.array(out)


def test_svdf_of_real_numbers_carries_its_state():
    x, feature, time, bias = reals(RUNS, 2, 7), reals(12, 7), reals(12, 6), reals(6)
    for rank, b, activation in ((2, bias, 1), (2, None, 0), (1, reals(12), 3)):
        unit = (lambda v: v, lambda v: np.maximum(v, 0), None, lambda v: clamp(v, 0, 6))[activation]
        expected = svdf(x, feature, time, b, rank, None, unit, 0, 0).astype(np.float32)
        check(svdf_model(x, feature, time, b, rank, 12 // rank, activation), [x], [expected],
              ("host",) if b is bias else (), exact=False)


def integer_svdf(kind, memory, zeros, rank=2, bias=True, units=8, inputs=11):
    filters = units * rank
    x, feature = bytes_of(RUNS + memory, 1, inputs, low=-128), bytes_of(filters, inputs)
    bounds = SHORT if kind == "int16" else BYTE
    time = RNG.integers(bounds[0] // 2, bounds[1] // 2, (filters, memory)).astype(kind)
    scales = [0.05, 0.02, 3e-5 if kind == "int16" else 0.01, 0.004 if kind == "int16" else 0.3, 0.09]
    if kind == "int16":
        scales[2], scales[4] = 1e-4, 0.5
    s = [np.float32(v) for v in scales]
    first = multiplier(np.float64(s[0] * s[1] / s[3]))
    second = multiplier(np.float64(s[3] * s[2] / s[4]))
    b = RNG.integers(-9000, 9000, units).astype(np.int32) if bias else None
    expected = svdf(x, feature, time, b, rank,
                    lambda v: clamp(scaled(v, first) + zeros[1], *bounds),
                    lambda v: clamp(scaled(v, second) + zeros[2], *BYTE), zeros[0], zeros[1])
    assert len(np.unique(expected)) > expected.size // 4, "results alike would prove nothing"
    model = svdf_model(x, feature, time, b, rank, units, 1, kind, (scales, zeros))
    return model, x, expected.astype(np.int8)


def test_svdf_of_integers_is_exact_with_a_state_of_16_bits():
    model, x, expected = integer_svdf("int16", 10, [3, 0, -5])
    text = check(model, [x], [expected], ("host", "mps3-an547"))
    assert "mur_mve_svdf_s16_run(" in text
    model, x, expected = integer_svdf("int16", 1, [-128, 0, 100], rank=1, bias=False)
    check(model, [x], [expected], ("host",))


def test_svdf_of_integers_is_exact_with_a_state_of_8_bits_and_a_zero_point():
    model, x, expected = integer_svdf("int8", 6, [-7, 9, 20])
    text = check(model, [x], [expected])
    assert "mur_svdf_s8_run(" in text and ", 9, " in text  # reset fills the zero point


# ---- LSTM ----

GATES = ("input", "forget", "cell", "output")


def lstm_model(x, weights, recurrent, biases, time_major=False, clip=0.0, kind="float32",
               scales=None, peepholes=None):
    """weights, recurrent, biases: by gate in TFLite's order; scales: of x, weights, recurrent, h, c,
    and zero points of x and h."""
    model = Model()
    hidden = len(biases[0])
    batch = x.shape[2 if time_major else 1]
    s, z = scales if scales else ([None, [None] * 4, [None] * 4, None, None], [0, 0])
    a = model.input("x", x.shape[1:], "int8" if scales else "float32", scale=s[0], zero=z[0])
    inputs = [a]
    inputs += [model.constant("w_" + g, w, scale=q) for g, w, q in zip(GATES, weights, s[1])]
    inputs += [model.constant("r_" + g, w, scale=q) for g, w, q in zip(GATES, recurrent, s[2])]
    inputs += [model.constant(f"p{i}", p) for i, p in enumerate(peepholes)] if peepholes else [None] * 3
    inputs += [model.constant("b_" + g, b, scale=s[0] * q if scales else None)
               for g, b, q in zip(GATES, biases, s[1])]
    inputs += [None, None]
    inputs.append(model.add("h", (batch, hidden), "int8" if scales else "float32", scale=s[3],
                            zero=z[1], variable=True))
    inputs.append(model.add("c", (batch, hidden), "int16" if scales else "float32", scale=s[4],
                            variable=True))
    inputs += [None] * 4
    y = model.add("y", x.shape[1:3] + (hidden,), "int8" if scales else "float32", scale=s[3],
                  zero=z[1])
    model.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, y, 71,
             [(0, 4), (1, float(clip)), (2, 0.0), (3, int(time_major))])
    model.outputs = [y]
    return model


def lstm(x, hidden, time_major, step):
    """x of all runs; step(x, h, c) -> h, c of a batch. The states begin where step's first is."""
    out, h, c = [], None, None
    for one in x:
        steps = one if time_major else one.swapaxes(0, 1)
        ys = []
        for now in steps:
            h, c = step(now, h, c)
            ys.append(h)
        out.append(np.array(ys) if time_major else np.array(ys).swapaxes(0, 1))
    return np.array(out)


def real_step(w, r, b, clip, peepholes=None):
    def step(x, h, c):
        x = x.astype(np.float64)
        h = np.zeros((len(x), len(b[0]))) if h is None else h
        c = np.zeros_like(h) if c is None else c
        sums = [x @ w[g].T + h @ r[g].T + b[g] for g in range(4)]
        p = peepholes or [0, 0, 0]
        sig = lambda v: 1 / (1 + np.exp(-v))
        i, f = sig(sums[0] + p[0] * c), sig(sums[1] + p[1] * c)
        c = f * c + i * np.tanh(sums[2])
        c = clamp(c, -clip, clip) if clip else c
        return sig(sums[3] + p[2] * c) * np.tanh(c), c
    return step


def test_lstm_of_real_numbers_carries_both_states():
    hidden, columns, steps, batch = 6, 5, 4, 2
    w, r = [reals(hidden, columns) for _ in GATES], [reals(hidden, hidden) for _ in GATES]
    b = [reals(hidden) for _ in GATES]
    p = [reals(hidden) for _ in range(3)]
    for time_major, clip, holes in ((False, 0.0, None), (True, 10.0, None), (False, 0.4, None),
                                    (False, 0.0, p)):
        x = reals(RUNS, *((steps, batch) if time_major else (batch, steps)), columns, size=2)
        expected = lstm(x, hidden, time_major, real_step(w, r, b, clip, holes)).astype(np.float32)
        check(lstm_model(x, w, r, b, time_major, clip, peepholes=holes), [x], [expected],
              ("host",) if clip < 1 else (), exact=False)


def integer_step(w, r, b, scales, zeros, clip):
    s = [np.float32(v) if not isinstance(v, list) else [np.float32(q) for q in v] for v in scales]
    unit = np.float32(2 ** -12)
    into = [multiplier(np.float64(s[0] * q) / np.float64(unit)) for q in s[1]]
    again = [multiplier(np.float64(s[3] * q) / np.float64(unit)) for q in s[2]]
    out = np.float64(np.float32(2 ** -15)) ** 2
    forget = multiplier(np.float64(2 ** -15))
    added, shown = multiplier(out / np.float64(s[4])), multiplier(out / np.float64(s[3]))
    power = int(np.log2(s[4]))
    bound = clip and int(min(clip / np.float64(s[4]), 32767))

    def step(x, h, c):
        x = x.astype(np.int64) - zeros[0]
        h = np.full((len(x), len(b[0])), zeros[1], np.int64) if h is None else h
        c = np.zeros_like(h) if c is None else c
        gates = []
        for g in range(4):
            a = clamp(scaled(x @ w[g].astype(np.int64).T + b[g], into[g]), *SHORT)
            again_sum = clamp(scaled((h - zeros[1]) @ r[g].astype(np.int64).T, again[g]), *SHORT)
            both = clamp(a + again_sum, *SHORT)
            gates.append(tanh(both, 0) if g == 2 else logistic(both))
        i, f, g, o = gates
        c = clamp(clamp(scaled(f * c, forget), *SHORT) + clamp(scaled(i * g, added), *SHORT), *SHORT)
        c = clamp(c, -bound, bound) if bound else c
        h = clamp(scaled(tanh(c, 12 + power) * o, shown) + zeros[1], *BYTE)
        return h, c
    return step


def integer_lstm(power, zeros, clip, time_major=False, big=1, hidden=9, columns=7, steps=6, batch=2):
    w, r = [bytes_of(hidden, columns) for _ in GATES], [bytes_of(hidden, hidden) for _ in GATES]
    b = [RNG.integers(-4000, 4000, hidden).astype(np.int32) for _ in GATES]
    scales = [0.011 * big, [0.006, 0.0051, 0.007, 0.0043], [0.0082, 0.0071, 0.009, 0.0066], 0.0078,
              2.0 ** power]
    x = bytes_of(RUNS, *((steps, batch) if time_major else (batch, steps)), columns, low=-128)
    expected = lstm(x, hidden, time_major, integer_step(w, r, b, scales, zeros, clip))
    assert len(np.unique(expected)) > 40, "results alike would prove nothing"
    return lstm_model(x, w, r, b, time_major, clip, scales=(scales, zeros)), x, \
        expected.astype(np.int8)


def test_lstm_of_integers_is_exact():
    model, x, expected = integer_lstm(-12, [5, -3], 10.0)
    text = check(model, [x], [expected], ("host", "mps3-an547"))
    assert "mur_mve_lstm_s8_run(" in text
    for power, zeros, clip, time_major, big in ((-11, [-128, 17], 0.0, True, 1),
                                                (-14, [0, 0], 0.0, False, 1),
                                                (-15, [1, 1], 0.7, False, 1),
                                                (-10, [7, 0], 0.0, False, 40)):
        model, x, expected = integer_lstm(power, zeros, clip, time_major, big)
        check(model, [x], [expected], ("host",) if power < -11 else ())


# ---- resource variables ----

def variables_model(begin=None):
    """A moving sum: y = x + kept; kept = (kept + x) / 2; and the last x."""
    model = Model()
    x = model.input("x", (3,))
    handle = model.add("handle", (1,), "resource")
    other = model.add("other", (1,), "resource")
    kept, last = model.add("kept", (3,)), model.add("last", (3,))
    y, half = model.add("y", (3,)), model.constant("half", np.float32([0.5]))
    mean = model.add("mean", (3,))
    model.op("VAR_HANDLE", [], handle, 111, [(1, "sum")])
    model.op("VAR_HANDLE", [], other, 111, [(1, "last")])
    model.op("READ_VARIABLE", [handle], kept, 112)
    model.op("READ_VARIABLE", [other], last, 112)
    model.op("ASSIGN_VARIABLE", [other, x], [], 113)
    model.op("ADD", [x, kept], y, 11)
    model.op("MUL", [y, half], mean, 21)
    model.op("ASSIGN_VARIABLE", [handle, mean], [], 113)
    model.outputs = [y, last]
    if begin is not None:
        once = Model()
        inside = once.add("inside", (1,), "resource")
        once.op("VAR_HANDLE", [], inside, 111, [(1, "sum")])
        once.op("ASSIGN_VARIABLE", [inside, once.constant("begin", np.full(3, begin, np.float32))],
                [], 113)
        model.others.append(once)
        model.op("CALL_ONCE", [], [], 103, [(0, 1)])
    return model


def test_variables_are_read_before_they_are_assigned():
    x = reals(RUNS, 3)
    kept, ys = np.zeros(3, np.float32), []
    for one in x:
        ys.append(one + kept)
        kept = ys[-1] * np.float32(0.5)
    last = np.concatenate([np.zeros((1, 3), np.float32), x[:-1]])
    check(variables_model(), [x], [np.array(ys), last], ("stm32f746",))
    check(variables_model(0.0), [x], [np.array(ys), last])


def test_variables_that_begin_as_something_else_are_refused():
    refuse(variables_model(1.5), UNSUPPORTED, "(CALL_ONCE) '': a variable that begins as 'begin'")
    model = variables_model(0.0)
    model.others[0].op("VAR_HANDLE", [], model.others[0].add("more", (1,)), 111)
    model.others[0].op("RELU", [model.others[0].add("t", (1,), variable=True)],
                       model.others[0].add("u", (1,)))
    refuse(model, UNSUPPORTED, "RELU, which runs once")
    model = variables_model(0.0)
    refuse(spoil(model, lambda _, o: o.__setitem__(0, 9)), MALFORMED, "no subgraph 9")
    refuse(spoil(variables_model(), lambda inputs, _: inputs.__setitem__(1, None)), MALFORMED,
           "(ASSIGN_VARIABLE) '': input 1 is absent")
    model = variables_model()
    refuse(spoil(model, lambda inputs, _: inputs.__setitem__(0, inputs[1])), MALFORMED,
           "not a handle of a variable")


# ---- a network as keyword spotters are: int16 in, SVDF, int8 and a softmax of int16 ----

def high(a, b):
    """gemmlowp's SaturatingRoundingDoublingHighMul"""
    product = int(a) * int(b)
    product += (1 << 30) if product >= 0 else 1 - (1 << 30)
    return product >> 31 if product >= 0 else -(-product >> 31)


def divide(x, by):
    """RoundingDivideByPOT"""
    return (x >> by) + ((x & (1 << by) - 1) > ((1 << by) - 1 >> 1) + (x < 0))


def saturate(x):
    return max(-2 ** 31, min(2 ** 31 - 1, x))


def exp_of(a):
    """exp_on_negative_values, Q5.26 to Q0.31"""
    if a == 0:
        return 2 ** 31 - 1
    quarter = 1 << 24
    fraction = (a & quarter - 1) - quarter
    x = saturate(fraction << 5) + (1 << 28)
    x2, x3, x4 = high(x, x), high(high(x, x), x), high(high(x, x), high(x, x))
    rest = divide(high(divide(x4, 2) + x3, 715827883) + x2, 1)
    result = 1895147668 + high(1895147668, x + rest)
    for bit, factor in enumerate((1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)):
        if (fraction - a) >> 24 + bit & 1:
            result = high(result, factor)
    return result


def share_of_sum(total):
    """GetReciprocal of Q12.19: Q0.31, and the bits over one"""
    zeros = 32 - int(total).bit_length()
    a = (int(total) << zeros) - 2 ** 31
    half = (a + 2 ** 31 - 1 + 1) // 2
    x = 1515870810 + high(half, -1010580540)
    for _ in range(3):
        x += saturate(high(x, (1 << 29) - high(half, x)) << 2)
    return saturate(x << 1), 12 - zeros


def softmax_i16(q, scale):
    """reference_ops::Softmax of int8 to int16, of one row"""
    beta = multiplier(min(np.float64(np.float32(scale)) * (1 << 26), 2 ** 31 - 1.0))
    # differences too great for their Q5.26, CalculateInputRadius
    radius = -int(np.floor(31 * 2.0 ** 26 / 2.0 ** beta[1])) if beta[1] > 0 else -255
    diff = q.astype(np.int64) - int(q.max())
    exps = [exp_of(int(scaled(d, beta))) if d >= radius else 0 for d in diff]
    one, bits = share_of_sum(sum(divide(e, 12) for e in exps))
    return clamp(np.array([divide(high(one, e), bits + 15) if e else 0 for e in exps]) - 32768, *SHORT)


def requantized(x, zero_in, scale_in, scale_out, zero_out):
    factor = multiplier(np.float64(np.float32(scale_in)) / np.float64(np.float32(scale_out)))
    return clamp(scaled(x.astype(np.int64) - zero_in, factor) + zero_out, *BYTE)


def test_a_keyword_spotter_is_exact():
    x = RNG.integers(-32768, 32768, (RUNS + 4, 1, 11)).astype(np.int16)
    bytes_in = requantized(x, 0, 0.0002, 0.05, -4).astype(np.int8)
    feature, time = bytes_of(12, 11), RNG.integers(-9000, 9000, (12, 8)).astype(np.int16)
    scales, units = [0.05, 0.02, 1e-4, 0.004, 0.06], 6
    s = [np.float32(v) for v in scales]
    first = multiplier(np.float64(s[0] * s[1] / s[3]))
    second = multiplier(np.float64(s[3] * s[2] / s[4]))
    hidden = svdf(bytes_in, feature, time, None, 2,
                  lambda v: clamp(scaled(v, first), *SHORT),
                  lambda v: clamp(scaled(v, second) - 128, *BYTE), -4, 0)
    weights, bias = bytes_of(5, units), RNG.integers(-3000, 3000, 5).astype(np.int32)
    last = multiplier(np.float64(s[4] * np.float32(0.002)) / np.float64(np.float32(0.03)))
    scores = clamp(scaled((hidden + 128) @ weights.astype(np.int64).T + bias, last) + 10, *BYTE)
    expected = np.array([[softmax_i16(row, 0.03) for row in run] for run in scores]).astype(np.int16)
    assert len(np.unique(expected)) > 25, "results alike would prove nothing"
    model = svdf_model(bytes_in, feature, time, None, 2, units, 1, "int16",
                       (scales, [-4, 0, -128]))
    wide = model.add("wide", (1, 11), "int16", scale=0.0002)
    before = Model()
    before.tensors = model.tensors
    before.op("QUANTIZE", [wide], model.inputs[0], 89)
    model.operators, model.inputs = before.operators + model.operators, [wide]
    fc = model.op("FULLY_CONNECTED", [model.outputs[0], model.constant("w", weights, scale=0.002),
                                      model.constant("b", bias, scale=s[4] * 0.002)],
                  model.add("scores", (1, 5), "int8", scale=0.03, zero=10), 8, [(0, 0)])
    out = model.add("shares", (1, 5), "int16", scale=1 / 65536, zero=-32768)
    model.outputs = [model.op("SOFTMAX", [fc], out, 9, [(0, 1.0)])]
    text = check(model, [x], [expected], ("host", "stm32f746"))
    assert "mur_ref_softmax_s16(" in text


# ---- runs in a row ----

def test_runs_in_a_row_need_as_many_of_each_input():
    x = reals(RUNS, 2, 7)
    model = svdf_model(x, reals(4, 7), reals(4, 3), None, 1, 4, 0)
    other = model.input("z", (2, 4))
    model.outputs.append(model.op("ADD", [model.outputs[0], other], model.add("sum", (2, 4)), 11))
    with tempfile.TemporaryDirectory() as folder:
        file, given = pathlib.Path(folder) / "net.tflite", pathlib.Path(folder) / "in.npz"
        file.write_bytes(model.bytes())
        np.savez(given, x, reals(RUNS - 1, 2, 4))
        muc("run", file, "--input", given, status=USAGE, message="runs in a row")
        np.savez(given, x[0], reals(2, 4))  # one run
        muc("run", file, "--input", given)
        # of another rank, but of as many elements as each run has: the same in all of them
        z, got, code = reals(2, 2, 2), pathlib.Path(folder) / "out.npz", pathlib.Path(folder) / "c"
        np.savez(given, x, z)
        muc("run", file, "--input", given, "--output", got)
        y, sums = np.load(got).values()
        np.testing.assert_array_equal(sums, y + z.reshape(2, 4))
        muc("compile", file, "--target", "mcu", "-o", code)
        muc("run", code, "--input", given, "--output", got)
        np.testing.assert_allclose(list(np.load(got).values())[1], sums, atol=2e-5)


# ---- what files may do wrong ----

def refuse(model, status, message):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "net.tflite"
        file.write_bytes(model.bytes())
        muc("run", file, status=status, message=message)


def spoil(model, change):
    """The model after change(operator's inputs, its options), which are lists."""
    kind, inputs, outputs, option, options, version = model.operators[-1]
    inputs, options = list(inputs), dict(options)
    change(inputs, options)
    model.operators[-1] = (kind, inputs, outputs, option, list(options.items()), version)
    return model


def test_a_damaged_svdf_is_refused_by_name():
    x, args = reals(1, 2, 7), (reals(12, 7), reals(12, 6), reals(6), 2, 6, 0)
    make = lambda: svdf_model(x, *args)
    state = lambda shape, variable=True: Model().add("odd", shape, variable=variable)

    def put(i, tensor):
        model = make()
        if tensor is not None:
            model.tensors.append(tensor)
        return spoil(model, lambda inputs, _: inputs.__setitem__(i, tensor))

    refuse(put(4, None), MALFORMED, "(SVDF) 'y': input 4, a state, is absent")
    refuse(put(4, state((2, 72), False)), MALFORMED, "before it is computed")
    refuse(put(4, state((2, 71))), MALFORMED, "filters * memory")
    refuse(put(2, state((12, 6))), UNSUPPORTED, "input 2 is the variable 'odd'")
    refuse(spoil(make(), lambda _, o: o.__setitem__(0, 5)), MALFORMED, "rank is 5")
    refuse(spoil(make(), lambda _, o: o.__setitem__(0, 0)), MALFORMED, "rank is 0")
    refuse(spoil(make(), lambda _, o: o.__setitem__(1, 77)), UNSUPPORTED, "activation")


def test_a_damaged_lstm_is_refused_by_name():
    hidden, columns = 3, 2
    part = lambda *shape: [reals(*shape) for _ in GATES]
    make = lambda: lstm_model(reals(1, 1, 4, columns), part(hidden, columns), part(hidden, hidden),
                              part(hidden))

    def put(i, tensor):
        model = make()
        if tensor is not None:
            model.tensors.append(tensor)
        return spoil(model, lambda inputs, _: inputs.__setitem__(i, tensor))

    odd = Model().constant("odd", reals(hidden, hidden + 1))
    refuse(put(1, None), UNSUPPORTED, "(UNIDIRECTIONAL_SEQUENCE_LSTM) 'y': input 1 is absent")
    refuse(put(7, odd), MALFORMED, "input 7, 'odd'")
    refuse(put(16, odd), UNSUPPORTED, "a projection")
    refuse(put(20, odd), UNSUPPORTED, "a layer norm")
    refuse(put(18, None), MALFORMED, "input 18, a state, is absent")
    refuse(spoil(make(), lambda inputs, _: inputs.__delitem__(slice(14, None))), UNSUPPORTED,
           "is absent")
    refuse(spoil(make(), lambda _, o: o.__setitem__(0, 1)), UNSUPPORTED, "not tanh")


def test_control_flow_is_refused_by_name():
    for name in ("WHILE", "IF"):
        model = Model()
        x = model.input("x", (3,))
        model.outputs = [model.op(name, [x, x], model.add("y", (3,)))]
        refuse(model, UNSUPPORTED, f"an operator of the network: {name} (1 node, 'y'); muc ops")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
