"""Style sheet of all explorers, in the colours of JupyterLab's theme."""

CSS = """
.nmd-explorer {container-type: inline-size; font-size: var(--jp-ui-font-size1, 13px);
  color: var(--jp-ui-font-color1, inherit); overflow: hidden;}
.nmd-columns {display: flex; flex-flow: row wrap; gap: 14px; align-items: flex-start;}
.nmd-controls {flex: 0 0 272px; width: 272px; padding: 2px 10px 8px; border-radius: 6px;
  border: 1px solid var(--jp-border-color2, #bbb); overflow: hidden;}
.nmd-main {flex: 1 1 430px; min-width: 0; overflow: hidden;}
.nmd-explorer .nmd-heading {font-weight: 600; margin: 6px 0 2px;}
.nmd-controls .widget-label, .nmd-main .widget-label {color: var(--jp-ui-font-color1);}
.nmd-control {overflow: hidden;}
.nmd-control .widget-inline-hbox {width: 100%; margin: 1px 0;}
.nmd-switched {display: flex; align-items: center; gap: 4px; overflow: hidden;}
.nmd-switched .widget-inline-hbox {flex: 1 1 0; min-width: 0;}
.nmd-switched .nmd-auto {flex: 0 0 46px; width: 46px; margin: 0; padding: 0 2px;}
.nmd-is-auto input {color: transparent !important;}
.nmd-controls .nmd-choose, .nmd-controls .nmd-sample {width: 100%; margin: 6px 0 2px;}
.nmd-explorer .nmd-choice {margin: 0 0 4px;}
.nmd-choice .widget-html-content {line-height: 1.35; white-space: normal;}
.nmd-explorer .widget-html, .nmd-explorer .widget-html-content {margin: 0; min-height: 0;
  height: auto;}
.nmd-explorer .nmd-control .nmd-note {line-height: 1.25; font-size: 12px; margin: 0 0 3px 96px;
  opacity: .8;}
.nmd-note .widget-html-content {line-height: 1.25; white-space: normal;}
.nmd-wrong .nmd-note {color: var(--jp-error-color0, #c62828); opacity: 1;}
.nmd-wrong input, .nmd-wrong select {border-color: var(--jp-error-color1, #d32f2f) !important;
  outline: 1px solid var(--jp-error-color1, #d32f2f);}
[data-jp-theme-light="false"] .nmd-wrong .nmd-note {color: #ff8a80;}
.nmd-toolbar {display: flex; flex-flow: row wrap; gap: 4px; align-items: center;}
.nmd-toolbar .widget-button, .nmd-footer .widget-button {width: 84px; margin: 0;}
.nmd-toolbar .nmd-progress {flex: 1 1 120px; min-width: 100px; margin: 0;}
.nmd-explorer .nmd-status {margin: 4px 0;}
.nmd-status .widget-html-content {line-height: 1.35; white-space: normal; min-height: 1.35em;}
.nmd-explorer .nmd-warnings {margin: 0 0 4px;}
.nmd-warnings .widget-html-content {line-height: 1.35; white-space: normal;
  color: var(--jp-warn-color0, #b45309);}
[data-jp-theme-light="false"] .nmd-warnings .widget-html-content {color: #ffb74d;}
.nmd-failed {color: var(--jp-error-color0, #c62828); font-weight: 600;}
[data-jp-theme-light="false"] .nmd-failed {color: #ff8a80;}
.nmd-panels {display: flex; flex-flow: row nowrap; gap: 12px; margin: 4px 0;}
.nmd-tile {flex: 1 1 0; min-width: 0; max-width: 260px; overflow: hidden;}
.nmd-tile .widget-html-content {line-height: 1.3;}
.nmd-tile img, img.nmd-plot {width: 100%; height: auto; display: block; margin: 0;
  object-fit: contain;}
.nmd-tile img {image-rendering: pixelated; border: 1px solid var(--jp-border-color2, #ccc);}
img.nmd-chart, .nmd-chart img {width: 100%; height: auto; max-width: 920px; margin: 0;}
[data-jp-theme-light="false"] img.nmd-chart {filter: invert(.92) hue-rotate(180deg);}
.nmd-slider {width: 100%; max-width: 640px;}
.nmd-gallery {display: flex; flex-flow: row wrap; gap: 6px; margin: 4px 0;}
.nmd-gallery .nmd-component {width: 62px; height: 62px; margin: 0; padding: 0 3px;
  background-color: transparent; background-size: 100% 100%; background-repeat: no-repeat;
  image-rendering: pixelated; color: var(--jp-ui-font-color0, inherit); font-size: 10.5px;
  line-height: 14px; text-align: left; vertical-align: top; display: flex;
  align-items: flex-start; justify-content: flex-start;
  border: 1px solid var(--jp-border-color2, #ccc); box-shadow: none;
  text-shadow: 0 0 2px var(--jp-layout-color0, #fff), 0 0 3px var(--jp-layout-color0, #fff);}
.nmd-gallery .nmd-component.nmd-selected {outline: 3px solid var(--jp-brand-color1, #1976d2);}
.nmd-explorer button:focus-visible, .nmd-explorer summary:focus-visible {
  outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px;}
.nmd-explorer table {border-collapse: collapse; margin: 4px 0; font-size: 12.5px;
  border: none; color: inherit;}
.nmd-explorer th, .nmd-explorer td {padding: 2px 12px 2px 0; text-align: right; border: none;
  line-height: 1.4; vertical-align: top;}
.nmd-explorer th:first-child, .nmd-explorer td:first-child {text-align: left;}
.nmd-explorer thead th {border-bottom: 1px solid var(--jp-border-color1, #999); font-weight: 600;}
.nmd-explorer tbody tr {background: none !important;}
.nmd-best {font-weight: 600;}
.nmd-footer {display: flex; flex-flow: row wrap; gap: 8px; align-items: flex-start;
  margin-top: 4px;}
.nmd-footer .nmd-filename {width: 230px;}
.nmd-footer .nmd-filename .widget-inline-hbox, .nmd-filename {margin: 0;}
.nmd-copy {flex: 1 1 100%;}
.nmd-explorer .nmd-copy .nmd-copy-button {width: 130px; margin: 0;}
.nmd-copy .widget-html-content {line-height: 1.3;}
.nmd-copy details {margin-top: 4px;}
.nmd-copy summary {cursor: pointer; width: max-content;}
.nmd-copy textarea {width: 100%; box-sizing: border-box; font-size: 12px; padding: 6px;
  font-family: var(--jp-code-font-family, monospace); color: var(--jp-content-font-color1);
  background: var(--jp-layout-color1); border: 1px solid var(--jp-border-color2, #bbb);
  white-space: pre; overflow-x: auto; resize: vertical;}
.nmd-tables {display: flex; flex-flow: row wrap; gap: 6px 28px; align-items: flex-start;}
.nmd-tables .nmd-table {flex: 1 1 280px; min-width: 0; max-width: 460px; overflow: hidden;}
.nmd-tables table {width: 100%; table-layout: fixed;}
.nmd-tables td, .nmd-tables th {width: 72px; padding-right: 4px;}
.nmd-tables td:first-child, .nmd-tables th:first-child {width: auto; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap;}
.nmd-tables .nmd-sure td:nth-child(2), .nmd-tables .nmd-sure th:nth-child(2) {width: 42px;}
.nmd-tables .nmd-sure td:nth-last-child(2), .nmd-tables .nmd-sure th:nth-last-child(2) {
  width: 65px;}
.nmd-tables .nmd-sure td:last-child, .nmd-tables .nmd-sure th:last-child {width: 94px;}
.nmd-clickable {position: relative; width: 100%; max-width: 920px; overflow: visible;}
.nmd-clickable .nmd-points {position: absolute; inset: 0; margin: 0; overflow: visible;
  pointer-events: none;}
.nmd-clickable .nmd-point {position: absolute; pointer-events: auto; width: 14px;
  height: 14px; min-width: 0;
  margin: -7px 0 0 -7px; padding: 0; border-radius: 50%; background: transparent;
  border: 2px solid transparent; box-shadow: none; line-height: 1;}
.nmd-clickable .nmd-point:hover, .nmd-clickable .nmd-point.nmd-selected {
  border-color: var(--jp-ui-font-color1, #333);}
@container (max-width: 740px) {
  .nmd-controls {flex: 1 1 100%; width: auto; display: grid; column-gap: 18px;
    grid-template-columns: 1fr 1fr;}
  .nmd-explorer .nmd-controls .nmd-heading {grid-column: 1 / -1;}
}
@container (max-width: 480px) {
  .nmd-controls {grid-template-columns: 1fr;}
}
"""
"""Rules for the CSS classes of the explorers.  Tests in a browser find widgets by these classes."""
