"""Trainers and clusters that plaudit works in: one leaf for each, which nothing else imports."""
