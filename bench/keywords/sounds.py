"""Synthetic speech (espeak-ng) and noise for the keyword spotter of examples/keyword_spotter: other voices and other
kinds of noise to train with than to test with. Nothing here is recorded from people or rooms."""
import subprocess

import numpy as np

RATE = 16000
WORDS = ["forward", "stop", "left", "right"]
# without words that sound like one of WORDS
OTHERS = """yes | no | up | down | on | off | go back | slow | fast | close | turn | light | water | table | window | garden | seven | three |
happy people | number | kitchen | banana | computer | weather | hello | robot | battery | charge | follow | river | mountain | story | paper |
doctor | sister | yellow | for a word or two | store | top | step | lift | lead | letters | road | ride | towards | afford it | stocks | spot |
the quick brown fox jumps over the lazy dog | it is ten past four in the afternoon | could you bring me a glass of juice |
they have lived in this house for years | my brother works at the hospital | I lost the keys to my bicycle | the meeting starts after lunch |
we need bread cheese and some apples | nobody knows what happened last night | the film was longer than the book | put your shoes in the cupboard |
there are many birds in the forest | she learned to swim when she was six | a cold wind came from the north | how much does this shirt cost |
the phone rang all day long | let us meet at the station on friday | he forgot his umbrella again | this soup tastes of garlic and pepper |
you may start whenever you are ready | our neighbours have a small black dog | the lamp in the corner is broken | I would rather stay at home tonight |
both teams played well in the final | turn the volume down a little""".replace("\n", " ").split(" | ")
# of which other speech is put together at random; without words that have one of WORDS within
COMMON = """about above across act add after again age air all almost along also always and animal another answer any appear apple area arm around
arrive art ask award away baby back bad bag ball bank base basket be bean bear beat because become bed before begin behind believe bell
best better between big bird bite black blood blow blue board boat body bone book born both bottle bottom bowl box boy branch brave bread
break breakfast bring brother brown brush build burn bus busy but butter button buy cake call camera camp can cap car card care carry case
castle cat catch cause centre chair chance change cheap check cheese chicken child chocolate choose church circle city class clean clear
clever climb clock cloth cloud coat coin cold colour come common cook cool copper corn cost cotton country course cover cow crowd cry cup
cut dance dark day dead deep desk dinner dirty dish dog door double down draw dream dress drink drive drop dry dust duty ear early earth
east easy eat edge egg eight end enough enter even evening every exact example eye face fact fair fall family famous far farm father fear
feather feel few field fifty fight fill find fine finger finish fire first fish fit five fix flag flat floor flower fly fold food foot
forest forget fork form fort forty four fox free fresh friend from front fruit full funny future game gate gather gentle get girl give
glad glass go gold gone good grass great green grey ground group grow guess guide hair half hall hand hang happen happy hard hat have head
hear heart heat heavy help hide high hill history hit hold hole holiday home hope horse hospital hot hour house how hundred hungry hurry
ice idea if inside iron island it job join juice jump just keep key kick kind king kiss knee knife knock know lady lake lamp land language
large last late laugh laughed law lazy leaf leapt learn leather leave leg lemon lesson lest let letter level lied life lift light like
line lion list listen little live lived lock loft lofty long look lose loud love low luck lunch machine magic main make man many map march
mark market match matter maybe meal mean measure meat medicine meet member middle mile milk mind minute miss money monkey month moon more
morning most mother mouse mouth move much music must name narrow near neck need needle never new news next nice night nine noise none
north nose not note nothing now nurse ocean off offer office often oil old once one onion only open orange order other our out over own
page pain paint pair pan park part party pass past path pay pen pencil person photo pick picture piece pig pilot pink place plan plant
plate play please plenty pocket point poor port potato pound power press price problem pull pure push queen question quick quiet quite
rabbit race radio rain raise rat rate reach read real reason record red remember rest rhyme rice rich ride rife ring ripe rise road rock
roof room root rope rot rough round rule run sad safe sail salt same sand save say scale school science score sea search season seat
second see seed sell send serve set seven several shade shape share sharp shelf ship shirt shoe shop short shoulder shout show shut side
sign silver simple since sing sit six size skill skin skirt sky sleep small smell smile smoke smooth snow so soap soft soil soldier some
son song soon sort sound soup south space speak special speed spell spend spoon sport spread spring square staff stamp stand star start
station stay steam steel steep step stick still stock stomach stomp stone stool stoop storm strange street string strong student study
stuff such sudden sugar summer sun sure surprise swim system table tail take talk tall tap taste teach team tell ten tent test than thank
that then there thick thin thing think third thirsty thirty this thousand thread three through throw ticket tie time tired title together
tomorrow tongue too tool tooth top toward town toy train travel tree trip trouble true trust try twelve twenty two under until use useful
valley value very village visit voice wait wake walk wall want war ward warm wash watch wave way wear week weight well west wet what wheel
when where which white who whole why wide wife wild win wind winter wire wise wish with wolf woman wonder wood wool word work world worry
wrong year yes yesterday yet young zero""".split()
TEST_OTHERS = """what is for dinner today | the train leaves at eight | please call me later | she sold the old car | put the cup away |
we walked along the beach | is it going to rain | he sends a long letter | my friend plays the piano | open the door slowly |
twenty five minutes ago | coffee with milk and sugar | the children are asleep | thank you very much | where did you find that |
there is nothing on the radio but old songs | a grey cat sleeps under the kitchen window | would you mind feeding the horses this evening |
her cousin studies law in another city | the museum is closed on mondays | it took us three hours to cross the valley |
nobody answered when I knocked | his speech was much too short | bring a warm jacket and good boots | the engine makes an odd noise |
prices have gone up again this winter | do not touch the red wire | they painted the fence last summer | an apple a day keeps the doctor away |
we lost four games in a row | the recipe asks for flour and butter | please lower your voice | your package will arrive tomorrow |
the committee could not agree on a date | several people were waiting outside | the last bus has already gone | I have forgotten my password |
the water in the harbour is deep | a little bird told me | he plays football with his brothers | the printer is out of paper |
my grandmother tells wonderful stories | we ordered two large pizzas | the moon rose over the hills | such things happen every day""".replace("\n", " ").split(" | ")
TRAIN_VOICES = """m1 m2 m4 m5 m8 f1 f2 adam Alex Andrea Andy Annie announcer antonio aunty caleb david Denis ed edward edward2 Gene
Gene2 grandpa gustave Henrique Hugo iven iven2 john kaukovalta klatt klatt2 klatt3 Lee marcelo Marco Mario max Michael michel norbert
Nguyen pablo paul quincy rob robert Storm travis victor zac""".split()
HELD_OUT_VOICES = "m7 f4 Alicia boris Diogo Jacky miguel steph2".split()  # neither: the spotter's threshold is chosen by them
TEST_VOICES = "m3 m6 f3 f5 anika belinda benjamin linda Mike pedro sandro shelby steph grandma".split()
TRAIN_ACCENTS, TEST_ACCENTS = ["en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp"], ["en-us", "en-gb", "en-gb-x-gbclan"]


def speak(text, accent, voice, pitch, speed):
    """A text's samples at RATE, -1..1, silence at both ends cut off."""
    wav = subprocess.run(["espeak-ng", "-v", f"{accent}+{voice}", "-p", str(pitch), "-s", str(speed), "--stdout", text],
                         check=True, capture_output=True).stdout
    x = np.frombuffer(wav[44:len(wav) // 2 * 2], "<i2") / 32768
    count = round(len(x) * RATE / 22050)  # espeak-ng's rate; below 8 kHz the spectrum stays
    spectrum = np.fft.rfft(x)[:count // 2 + 1]
    x = np.fft.irfft(np.pad(spectrum, (0, count // 2 + 1 - len(spectrum))), count) * count / len(x)
    loud = np.flatnonzero(abs(x) > 0.02 * abs(x).max())
    return (x[loud[0]:loud[-1] + 1] / abs(x).max()).astype(np.float32)


def say_all(texts, voices, accents, each, rng):
    """Each text by every voice, `each` times at other pitches and speeds."""
    return [[speak(text, rng.choice(accents), voice, rng.integers(25, 76), rng.integers(125, 201))
             for voice in voices for _ in range(each)] for text in texts]


def say_sentences(count, voices, accents, rng):
    """Other speech: one to seven words of COMMON at random, each sentence by some voice."""
    return [speak(" ".join(rng.choice(COMMON, rng.integers(1, 8))), rng.choice(accents), rng.choice(voices), rng.integers(25, 76),
                  rng.integers(125, 201)) for _ in range(count)]


def coloured(count, slope, rng):
    """Noise whose power falls with the frequency to the power of slope."""
    spectrum = rng.normal(size=count // 2 + 1) + 1j * rng.normal(size=count // 2 + 1)
    spectrum *= np.maximum(np.arange(count // 2 + 1), 4) ** (-slope / 2)
    return np.fft.irfft(spectrum, count)


def hum(count, rng):
    t, base = np.arange(count) / RATE, rng.uniform(45, 65)
    return sum(rng.uniform(0, 1) / k * np.sin(2 * np.pi * base * k * t + rng.uniform(0, 6.28)) for k in range(1, 9))


def engine(count, rng):
    """Pulses at a rate that wanders, through noise."""
    phase = np.cumsum(rng.uniform(15, 40) * (1 + 0.3 * np.sin(2 * np.pi * rng.uniform(0.1, 0.5) * np.arange(count) / RATE))) / RATE
    return np.exp(-8 * (phase % 1)) * coloured(count, rng.uniform(0.3, 0.8), rng)


def rain(count, rng):
    """Clicks over quiet hiss."""
    clicks = (rng.random(count) < rng.uniform(0.001, 0.01)) * rng.normal(size=count)
    return np.convolve(clicks, np.exp(-np.arange(80) / 15), "same") + 0.1 * coloured(count, -0.5, rng)


def babble(count, speech, rng):
    """Four that speak at once."""
    out = np.zeros(count)
    for _ in range(4):
        at = -int(rng.integers(0, RATE // 2))
        while at < count:
            word = speech[rng.integers(len(speech))]
            begin, end = max(at, 0), min(at + len(word), count)
            out[begin:end] += word[begin - at:end - at] if end > begin else 0
            at += len(word) + int(rng.integers(0, RATE // 4))
    return out


def swelling(count, rng):
    """Coloured noise that swells and falls."""
    t = np.arange(count) / RATE
    return coloured(count, rng.uniform(-0.5, 2), rng) * (1 + np.sin(2 * np.pi * 10 ** rng.uniform(-0.5, 1.3) * t + rng.uniform(0, 6.28)))


def knocks(count, rng):
    """A few short tones that die away."""
    out, t = 0.02 * coloured(count, rng.uniform(0, 1.5), rng), np.arange(RATE // 4) / RATE
    for at in rng.integers(0, count - len(t), max(count // RATE * 3, 1)):
        out[at:at + len(t)] += np.exp(-t * rng.uniform(20, 200)) * np.sin(2 * np.pi * rng.uniform(100, 4000) * t) * rng.uniform(0.3, 1)
    return out


def noise(count, test, speech, rng):
    """A kind of noise, of power 1: coloured, swelling, hum, knocks and babble to train with; an engine, rain and the babble of
    other voices to test with."""
    if test:
        x = [lambda: engine(count, rng), lambda: rain(count, rng), lambda: babble(count, speech, rng)][rng.integers(3)]()
    else:
        x = [lambda: coloured(count, rng.uniform(-0.5, 2), rng), lambda: swelling(count, rng), lambda: knocks(count, rng),
             lambda: hum(count, rng) + 0.1 * coloured(count, 1, rng), lambda: babble(count, speech, rng)][rng.integers(5)]()
    return x / np.sqrt((x ** 2).mean() + 1e-12)


def of_another_size(x, rng):
    """Slower and lower, or faster and higher, by up to a sixth: as larger and smaller heads speak."""
    return np.interp(np.arange(0, len(x) - 1, rng.uniform(0.86, 1.17)), np.arange(len(x)), x)


def coloured_by_a_room(x, rng):
    """Louder and quieter by up to 8 dB at some frequencies, as microphones and rooms make it."""
    spectrum = np.fft.rfft(x)
    gains = np.interp(np.linspace(0, 1, len(spectrum)), np.sort(rng.random(6)), rng.uniform(-8, 8, 6))
    return np.fft.irfft(spectrum * 10 ** (gains / 20), len(x))


def mix(speech_part, noise_part, decibels, level):
    """16-bit samples: speech (of power 1 where it speaks) over noise at this ratio, at a level below full scale."""
    x = speech_part + noise_part * 10 ** (-decibels / 20)
    return np.clip(np.round(x * 32767 * 10 ** (level / 20) / 4), -32768, 32767).astype(np.int16)


def loudness(x):
    return x / np.sqrt((x ** 2).mean() + 1e-12)
