// What the map shows, in words: for screen readers.
const NAMED_CLASSES = 12;

function announce(text) {
  $("status").textContent = text;
}

function describeMap() {
  const parts = [`Map of ${plural(n, "point")}.`], labels = [...filters.values()].map(({ label }) => label);
  if (labels.length) parts.push(`${grouped(countOf(highlighted))} highlighted by ${labels.join("; ")}.`);
  if (!colorColumn) parts.push("All points have one color.");
  else parts.push(`Colored by ${colorColumn.name}${isScale(colorColumn) ? endsInWords(colorColumn) : `: ${classesInWords(colorColumn)}`}.`);
  for (const note of layers.map((layer) => layer.note())) if (note) parts.push(`${note} placed on it.`);
  $("summary").textContent = parts.join(" ");
}

const endsInWords = (column) => `, from ${rangeText(column, column.low)} to ${rangeText(column, column.high)}`;

function classesInWords(column) {
  const counts = countClasses(column, highlighted), present = [...counts.keys()].filter((code) => counts[code]);
  const largest = present.sort((a, b) => counts[b] - counts[a]);
  const listed = largest.slice(0, NAMED_CLASSES).map((code) => `${column.names[code]} ${grouped(counts[code])}`);
  return listed.join(", ") + (largest.length > NAMED_CLASSES ? `, and ${plural(largest.length - NAMED_CLASSES, "more class")}` : "");
}

const describeSoon = oncePerFrame(() => {
  describeMap();
  announce(highlighted ? `${grouped(countOf(highlighted))} of ${plural(n, "point")} highlighted` : `All ${plural(n, "point")} shown`);
});
highlightWatchers.push(describeSoon);
