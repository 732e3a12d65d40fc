"""Typed columns of the rows beside a long table: the same problem as in a dense table."""

import numpy as np
import pandas as pd

import nmd_lab as nmd
from nmd_lab.problem.columns import mixed_model

USERS = [f"user {k}" for k in range(24)]
OPTIONS = {"alpha": 0.5, "offsets": "none", "tol": 0, "max_iter": 40, "random_state": 0}


def tables():
    """Return ratings in long form, attributes of the users with holes, both, and a dense table.

    Each item has the same ratings, by other users, so that the unit of all is that of each.
    """
    rng = np.random.default_rng(0)
    ratings = np.array([1.0, 2, 2, 3, 3, 3, 4, 4, 5, 5])
    columns = [
        {"user": rng.permutation(USERS[:20])[:10], "item": item, "rating": ratings}
        for item in range(5)
    ]
    long = pd.concat([pd.DataFrame(column) for column in columns])
    age = pd.Series(rng.integers(18, 70, 24).astype(float), USERS)
    users = pd.DataFrame({"age": age, "member": pd.array(rng.random(24) < 0.5, "boolean")})
    users.loc[USERS[3], "age"] = np.nan
    users.loc[USERS[5], "member"] = pd.NA
    dense = long.pivot(index="user", columns="item", values="rating").reindex(sorted(USERS))
    dense = dense.rename(columns=str).join(users)
    return long, users, nmd.observations_from_table(long, attributes=users), dense


def test_it_is_the_problem_of_a_dense_table(read_back):
    long, _, X, dense = tables()
    assert X.n_observed == len(long) + 2 * 24 - 2  # nothing is stored where nothing is known
    few, whole = nmd.complete(X, 2, **OPTIONS), nmd.complete(dense, 2, **OPTIONS)
    assert few.reconstruct()["item"].values.tolist() == [0, 1, 2, 3, 4, "age", "member"]
    assert few.reconstruct()["user"].values.tolist() == dense.index.tolist()
    np.testing.assert_allclose(few.reconstruct(), whole.reconstruct(), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(few.probabilities("member"), whole.probabilities("member"), 1e-7)
    new = pd.DataFrame({"member": [True], "age": [33.0]}, index=["new"])
    predicted = few.append(new).predict("new", [0, 4, "age"])
    np.testing.assert_allclose(predicted, whole.append(new).predict("new", ["0", "4", "age"]), 1e-6)
    assert few.top(USERS[0], k=9).size == 5  # an age is nothing to recommend
    again = read_back(few)
    np.testing.assert_array_equal(again.predict(USERS[0], "age"), few.predict(USERS[0], "age"))
    assert again._labels.table == few._labels.table


def test_the_posterior_is_that_of_a_dense_table():
    few, whole = (nmd.sample(X, 2, draws=10, tune=5, random_state=0) for X in tables()[2:])
    np.testing.assert_allclose(few.reconstruct(), whole.reconstruct(), rtol=1e-6)
    new = few.fold_in(pd.DataFrame({"member": [True], "age": [33.0]}, index=["new"]))
    assert new.top("new", k=9).size == 5
    assert new.probabilities("member").index.tolist() == ["new"]


def test_all_values_share_a_unit_and_may_have_a_loss_by_their_name():
    X = tables()[2]
    model = mixed_model("identity", {"rating": "l1"}, X)
    assert [kind.loss.name for kind in model.column_models] == ["l1", "frobenius", "logistic"]
    assert model.model_index.tolist() == [0] * 5 + [1, 2]
    assert mixed_model("identity", {3: "l1"}, X).model_index.tolist() == [0, 0, 0, 1, 0, 2, 3]


def test_float32_stays_and_a_split_keeps_indicators_together():
    long, users, *_ = tables()
    users["work"] = pd.Categorical.from_codes(np.arange(24) % 3, ["art", "law", "none"])
    X = nmd.observations_from_table(long.astype({"rating": "float32"}), attributes=users)
    assert X.dtype == np.float32
    assert X.column_labels[-3:].tolist() == ["work=art", "work=law", "work=none"]
    train, test = nmd.split_observed(X, 0.3, random_state=0)
    assert train.n_observed + test.n_observed == X.n_observed
    held = pd.DataFrame(~np.isnan(test.to_array()), columns=X.column_labels)
    assert held["work=art"].equals(held["work=none"])
    assert not held[0].equals(held[1])
