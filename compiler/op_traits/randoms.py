"""Traits of random ops: of those that keep a hidden state, which op draws the same from a seed.

Of several generations of a stateless op the twin is the one with a `seed` operand. The later ones
(StatelessRandomUniformV2, StatelessRandomGammaV3) take a key, a counter and an algorithm instead,
which StatelessRandomGetKeyCounter makes of a seed; StatelessShuffle has that form alone.
"""

from __future__ import annotations

from .traits import OpTraits, Read, reads

ROWS = (
    # From a key and a counter.
    OpTraits("StatelessRandomGetKeyCounter", "randoms", outputs=("key", "counter")),
    OpTraits(
        "StatelessRandomUniformV2",
        "randoms",
        limits='Philox, which is what "auto_select" chooses',
        reads=reads(shape=Read.INDEX, key=Read.VALUES, counter=Read.VALUES, alg=Read.INDEX),
        operations=12,
        draws=True,
    ),
    OpTraits(
        "StatelessRandomNormalV2",
        "randoms",
        limits="as StatelessRandomUniformV2; within 2 units in the last place of TensorFlow's",
        reads=reads(shape=Read.INDEX, key=Read.VALUES, counter=Read.VALUES, alg=Read.INDEX),
        operations=60,
        draws=True,
    ),
    OpTraits(
        "StatelessRandomUniformIntV2",
        "randoms",
        limits="as StatelessRandomUniformV2; a range that is known",
        reads=reads(
            shape=Read.INDEX,
            key=Read.VALUES,
            counter=Read.VALUES,
            alg=Read.INDEX,
            minval=Read.INDEX,
            maxval=Read.INDEX,
        ),
        operations=12,
    ),
    OpTraits("StatelessTruncatedNormalV2", draws=True),
    # With a state.
    OpTraits("Multinomial", stateless_twin="StatelessMultinomial"),
    OpTraits("NonDeterministicInts", stateless_twin="StatelessRandomUniformFullInt"),
    OpTraits(
        "ParameterizedTruncatedNormal", stateless_twin="StatelessParameterizedTruncatedNormal"
    ),
    OpTraits("RandomGamma", stateless_twin="StatelessRandomGammaV2"),
    OpTraits("RandomPoisson", stateless_twin="StatelessRandomPoisson"),
    OpTraits("RandomPoissonV2", stateless_twin="StatelessRandomPoisson"),
    OpTraits("RandomShuffle", stateless_twin="StatelessShuffle"),
    OpTraits("RandomStandardNormal", stateless_twin="StatelessRandomNormal"),
    OpTraits("RandomUniform", stateless_twin="StatelessRandomUniform"),
    OpTraits("RandomUniformInt", stateless_twin="StatelessRandomUniformInt"),
    OpTraits(
        "SampleDistortedBoundingBox",
        stateless_twin="StatelessSampleDistortedBoundingBox",
        outputs=("begin", "size", "bboxes"),
    ),
    OpTraits(
        "SampleDistortedBoundingBoxV2",
        stateless_twin="StatelessSampleDistortedBoundingBox",
        outputs=("begin", "size", "bboxes"),
    ),
    OpTraits("StatefulRandomBinomial", stateless_twin="StatelessRandomBinomial"),
    OpTraits("StatefulStandardNormal", stateless_twin="StatelessRandomNormal"),
    OpTraits("StatefulStandardNormalV2", stateless_twin="StatelessRandomNormal"),
    OpTraits("StatefulTruncatedNormal", stateless_twin="StatelessTruncatedNormal"),
    OpTraits("StatefulUniform", stateless_twin="StatelessRandomUniform"),
    OpTraits("StatefulUniformFullInt", stateless_twin="StatelessRandomUniformFullInt"),
    OpTraits("StatefulUniformInt", stateless_twin="StatelessRandomUniformInt"),
    OpTraits("TruncatedNormal", stateless_twin="StatelessTruncatedNormal"),
)
