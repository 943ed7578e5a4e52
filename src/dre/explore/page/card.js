// What is known of a point, beside it. Everything is set as text: whatever a label holds, it stays what it says.
const LONGEST = 400; // characters of a value

function shortened(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

function showCard(i) {
  const card = $("card");
  if (i === ringed && card.hidden === i < 0) return;
  ringed = i;
  card.hidden = i < 0;
  if (!asked) paintOver(drawnLast);
  if (i < 0) return;
  card.replaceChildren();
  if (about.thumbnails) card.append(imageOf(i, 112));
  const name = document.createElement("b"), list = document.createElement("dl");
  name.textContent = nameOf(i);
  for (const column of rows.columns) {
    const term = document.createElement("dt"), value = document.createElement("dd");
    term.textContent = column.name;
    value.textContent = shortened(valueOf(column, i));
    list.append(term, value);
  }
  card.append(name, list);
  const px = across(now.x[i]), py = down(now.y[i]), { width, height } = card.getBoundingClientRect();
  card.style.left = `${Math.max(6, px + 16 + width > view.width ? px - width - 16 : px + 16)}px`;
  card.style.top = `${Math.max(6, Math.min(view.height - height - 6, py - height / 2))}px`;
}
