"""Where circuits run: any sampler of the second version behind one adapter, and simulated devices."""
