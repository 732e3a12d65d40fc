# Rscript mice.R FOLDER METHOD|default COPIES ROUNDS SEED: seen.csv, kinds.csv -> copy1.csv, ...
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
numbers <- as.integer(arguments[3:5])
suppressMessages(library(mice))
how <- if (arguments[2] == "default") NULL else arguments[2]  # by the kinds of the columns
seen <- read.csv(file.path(folder, "seen.csv"))
kinds <- read.csv(file.path(folder, "kinds.csv"))$kind
for (k in seq_along(kinds)) {
  if (kinds[k] == "level") seen[[k]] <- factor(seen[[k]], ordered = TRUE)
  if (kinds[k] %in% c("yes", "class")) seen[[k]] <- factor(seen[[k]])
}
near <- if (ncol(seen) > 40) quickpred(seen, mincor = 0.2) else make.predictorMatrix(seen)
run <- function(...) mice(seen, predictorMatrix = near, m = numbers[1], maxit = numbers[2],
                          seed = numbers[3], method = how, printFlag = FALSE, ...)
filled <- tryCatch(run(), error = function(e) run(ridge = 1e-3))  # of collinear columns
for (k in seq_len(numbers[1])) {
  write.csv(complete(filled, k), file.path(folder, paste0("copy", k, ".csv")), row.names = FALSE)
}
