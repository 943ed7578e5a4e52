// The side panel: what it shows at first, and its controls.
function showPanel() {
  $("title").textContent = about.title;
  about.columns.forEach((column, k) => { if (column.kind !== "text") $("color").append(new Option(column.name, `column ${k}`)); });
  $("color").append(new Option("single color", "single"));
  const stageCount = about.maps[0].stages.length;
  $("slider").max = String(stageCount - 1);
  $("stages").hidden = stageCount < 2 && about.maps.length < 2 && !about.maps[0].stages[0].scores.length;
  $("stages-heading").textContent = stageCount < 2 ? "Scores" : "Stage";
  $("slider").parentElement.hidden = stageCount < 2;
  $("notes").append(...about.notes.map((note) => make("p", {}, note)));
  showChips();
  showBesideChoices();
}

// A second map beside the first: another stage, or another map.
function showBesideChoices() {
  const choices = about.maps.flatMap((map, k) => map.stages.map((stage, s) => {
    const title = k === 0 ? stage.title : map.stages.length > 1 ? `${map.title}: ${stage.title}` : map.title;
    return new Option(title, `${k},${s}`);
  }));
  $("beside").append(new Option("nothing", ""), ...choices);
  $("beside-choice").hidden = choices.length < 2;
}

async function showBeside(source, stage) {
  await setBeside(source, stage);
  $("beside").value = besideText() || "";
  if (pinned >= 0) showPinned();
}

// Shows the column of this name in the field, null for the page's own; returns its number, −1 for a single color.
function chooseColor(name) {
  const found = about.columns.findIndex((column) => column.name === (name === null ? about.color : name) && column.kind !== "text");
  $("color").value = found < 0 ? "single" : `column ${found}`;
  return found;
}

function colorChoice() {
  const [, number] = /^column (\d+)$/.exec($("color").value) || [];
  return number === undefined ? null : rows.columns[Number(number)];
}

function collapsePanel(on) {
  document.body.classList.toggle("collapsed", on);
  $("collapse").setAttribute("aria-expanded", String(!on));
}

function listenToPanel() {
  $("color").addEventListener("change", () => colorBy(colorChoice()));
  $("scale").addEventListener("change", () => colorBy(colorColumn, $("scale").value));
  $("show-names").addEventListener("change", redraw);
  $("search").addEventListener("input", (event) => searchSoon(event.target.value));
  $("search").addEventListener("keydown", (event) => { if (event.key === "Enter") zoomToFound(); });
  $("export").addEventListener("click", exportRows);
  $("zoom-to").addEventListener("click", zoomToShown);
  $("help-button").addEventListener("click", showHelp);
  $("collapse").addEventListener("click", () => collapsePanel(!document.body.classList.contains("collapsed")));
  $("beside").addEventListener("change", ({ target }) => showBeside(...(target.value ? target.value.split(",").map(Number) : [null])));
  $("png").addEventListener("click", () => exportPng());
  $("svg").addEventListener("click", () => exportSvg());
  for (const [id, name] of [["point-size", "size"], ["point-opacity", "opacity"]]) {
    $(id).addEventListener("input", () => {
      pointStyle[name] = Number($(id).value);
      pointsChanged();
    });
  }
}
