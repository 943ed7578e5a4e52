// New rows in the panel: their number and list, what could not be placed, and the table that can be saved.
const LISTED_NEW = 60;

function newRowButton(k) {
  const image = newImage(k, 32), label = newTitle(k);
  const button = makeButton({ title: label, "aria-label": `New row ${label}` }, ...(image ? [image] : [make("span", { class: "new-mark" }), make("span", { class: "name" }, label)]));
  button.addEventListener("pointerenter", () => ringNew(k));
  button.addEventListener("pointerleave", () => ringNew(-1));
  return onClick(button, () => pinNewRow(k));
}

function ringNew(k) {
  newHovered = k;
  drawOverlays();
}

function showNewRows() {
  const { count } = newRows, listed = Math.min(count, LISTED_NEW), hasImages = batches.some(({ images }) => images);
  $("new-legend").hidden = !count;
  $("new-count").textContent = newCount();
  $("new-list").classList.toggle("images", hasImages);
  $("new-list").replaceChildren(...Array.from({ length: listed }, (_, k) => make("li", {}, newRowButton(k))));
  $("new-more").textContent = count > listed ? `The first ${listed} of ${grouped(count)}; the CSV has all.` : "";
  maps[0].canvas.dataset.newRows = count;
  showNewStage();
  describeMap();
  redraw();
}

// New rows have no place at other stages, of which the page has no weights.
function showNewStage() {
  $("new-stage").hidden = !newRows.count || maps.some(showsNewRows);
}

// Numbers that the model has read have points and no units, so that rows of several files make one table.
function newRowsAsCsv() {
  const { count, original } = newRows, all = Array.from({ length: count }, (_, k) => new Map(newValues(k, engine.plainValue)));
  const names = [...new Set(all.flatMap((values) => [...values.keys()]))], axes = original.map((_, axis) => `dre${axis + 1}`);
  const lines = all.map((values, k) => {
    const batch = batches[newRows.batch[k]];
    return [batch.names ? batch.names[newRows.line[k]] : batch.title, batch.names ? "" : String(newRows.line[k]),
      ...original.map((each) => exactText(each[k], true)), ...names.map((name) => values.get(name) || "")];
  });
  return [distinctNames(["file", "line", ...axes, ...names]), ...lines].map((line) => line.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

function saveNewRows() {
  saveFile(new Blob([newRowsAsCsv()], { type: "text/csv" }), "new-rows.csv");
}
