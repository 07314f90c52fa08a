import pytest

pytest.register_assert_rewrite("live.stores.contract")
