"""plaudit: rewards from language-model judges, without the GPU waiting."""
