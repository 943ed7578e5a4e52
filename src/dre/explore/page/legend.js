// The legend: classes with their colors, or a color bar with ticks.
let legendList = null; // the list of classes that is shown

function showLegend() {
  const column = colorColumn, isNumeric = column !== null && isScale(column), names = isNumeric ? scaleNames(column) : [];
  $("show-names").parentElement.hidden = !column || isNumeric;
  $("scale-choice").hidden = names.length < 2;
  $("scale").replaceChildren(...names.map((name) => new Option(name, name, false, name === colorScale)));
  legendList = column && !isNumeric ? classList(column, { dots: true }) : null;
  const shown = isNumeric ? colorBar(column) : legendList ? [legendList.element, ...grayNote(column)] : [];
  if (column && column.explain) shown.push(make("p", { class: "quiet" }, column.explain));
  $("legend").replaceChildren(...shown);
}

highlightWatchers.push(() => { if (legendList) legendList.update(); });

function grayNote(column) {
  const gray = column.names.length - colorsOf(column).length - (column.missing ? 1 : 0);
  if (gray <= 0) return [];
  return [make("p", { class: "quiet" }, gray > 1 ? `${grouped(gray)} smaller classes are gray.` : "One smaller class is gray.")];
}

function colorBar(column) {
  const ticks = scaleTicks(column, colorScale).filter(([position]) => position >= -1e-6 && position <= 1 + 1e-6);
  const bar = make("div", { class: "ramp", style: `background: linear-gradient(to right, ${colorsOf(column).join(", ")})` });
  const missing = maskOf(column, Number.isNaN), without = countOf(missing);
  const note = without ? [make("p", { class: "quiet" }, `${plural(without, "point")} without a value, in gray.`)] : [];
  return [bar, makeAxis(spaced(ticks, 0.17)), ...note];
}

// Ticks that keep a distance from each other, as a share of the axis; the last stays.
function spaced(ticks, distance) {
  const kept = [];
  for (const tick of [...ticks].reverse()) if (!kept.length || kept[kept.length - 1][0] - tick[0] >= distance) kept.push(tick);
  return kept.reverse();
}
