// What the map shows, in words: for screen readers.
const NAMED_CLASSES = 12;

function announce(text) {
  $("status").textContent = text;
}

function describeMap() {
  const parts = [`Map of ${plural(n, "point")}.`];
  if (filters.size) parts.push(`${grouped(countOf(highlighted))} highlighted by ${[...filters.values()].map(({ label }) => label).join("; ")}.`);
  if (!colorColumn) parts.push("All points have one color.");
  else if (isScale(colorColumn)) parts.push(`Colored by ${colorColumn.name}, from ${rangeText(colorColumn, colorColumn.low)} to ${rangeText(colorColumn, colorColumn.high)}.`);
  else parts.push(`Colored by ${colorColumn.name}: ${classesInWords(colorColumn)}.`);
  $("summary").textContent = parts.join(" ");
}

function classesInWords(column) {
  const counts = countClasses(column, highlighted), largest = [...counts.keys()].filter((code) => counts[code]).sort((a, b) => counts[b] - counts[a]);
  const told = largest.slice(0, NAMED_CLASSES).map((code) => `${column.names[code]} ${grouped(counts[code])}`);
  return told.join(", ") + (largest.length > NAMED_CLASSES ? `, and ${plural(largest.length - NAMED_CLASSES, "more class")}` : "");
}

const describeSoon = oncePerFrame(() => {
  describeMap();
  announce(highlighted ? `${grouped(countOf(highlighted))} of ${plural(n, "point")} highlighted` : `All ${plural(n, "point")} shown`);
});
highlightWatchers.push(describeSoon);
