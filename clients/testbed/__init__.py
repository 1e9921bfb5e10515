"""A faulty service, retryd, and what stands in for retryd on a bad day; see README.md."""
