"""`composite.accelerate`: kernels for models in which no composite was written.

The runtime's graph pass makes nodes of regions (composite/runtime/regions); here is what a user
holds of them: the function with regions beside the one without, compared, measured and reported,
and SavedModels whose signatures are such functions.
"""
