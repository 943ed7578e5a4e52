// One entry for each column of classes, numbers or dates; unfolding it shows its histogram, which filters.
const openColumns = new Map(); // details element → its histogram or list of classes

function aboutColumn(column) {
  if (column.kind === "class") return plural(column.names.length, "class");
  return column.kind === "date" ? "dates" : "numbers";
}

function columnEntry(column) {
  const head = make("summary", {}, make("span", { class: "name" }, column.name), make("span", { class: "quiet" }, aboutColumn(column)));
  const entry = make("details", {}, head);
  entry.addEventListener("toggle", () => {
    if (!entry.open) return openColumns.delete(entry);
    if (entry.children.length === 1) {
      const made = column.kind === "class" ? classList(column, { dots: false }) : histogram(column);
      entry.append(made.element);
      entry.made = made;
    }
    entry.made.update();
    openColumns.set(entry, entry.made);
    entry.scrollIntoView({ block: "nearest" }); // it may open below the end of the panel
  });
  return entry;
}

function showColumns() {
  const shown = rows.columns.filter((column) => column.kind !== "text");
  $("columns").replaceChildren(...shown.map(columnEntry));
  $("columns").parentElement.hidden = !shown.length;
}

const updateColumns = oncePerFrame(() => openColumns.forEach((made) => made.update()));
highlightWatchers.push(() => { if (openColumns.size) updateColumns(); });
