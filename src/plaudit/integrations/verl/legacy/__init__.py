"""The reward managers of verl before 0.7.1, which score a whole DataProto in one call."""
