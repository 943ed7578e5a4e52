// The rows that pass all filters: their number, the first of them in the panel, and buttons for the table and the export.
const MAX_LISTED = 60, MAX_THUMBNAILS = 120;
const LASSO_HINT = "Choose Lasso, or hold shift, and drag around points. Hold ctrl to add more.";

// Ids of the highlighted rows, or of all.
function shownIds() {
  return highlighted ? Uint32Array.from(idsOf(highlighted)) : Uint32Array.from({ length: n }, (_, i) => i);
}

function rowButton(i) {
  const button = makeButton(
    { title: rowLabel(i), "aria-label": rowLabel(i) },
    about.thumbnails ? imageElement(i, 32) : makeDot(colors[i]),
    about.thumbnails ? null : make("span", { class: "name" }, rowLabel(i)),
  );
  button.addEventListener("pointerenter", () => ringAround(i));
  button.addEventListener("pointerleave", () => ringAround(-1));
  return onClick(button, () => pinCard(i));
}

const showRows = oncePerFrame(() => {
  const ids = highlighted ? idsOf(highlighted) : [], listed = about.thumbnails ? MAX_THUMBNAILS : MAX_LISTED, list = $("selected-rows");
  list.classList.toggle("images", Boolean(about.thumbnails));
  list.replaceChildren(...ids.slice(0, listed).map((i) => make("li", {}, rowButton(i))));
  $("zoom-to").hidden = !ids.length;
  const more = ids.length > listed ? `The first ${listed} of ${grouped(ids.length)}; the table shows all.` : "";
  $("rows-note").textContent = highlighted ? more : LASSO_HINT;
});
highlightWatchers.push(showRows);

function zoomToShown() {
  for (const map of maps) map.fitView(idsOf(highlighted));
}
