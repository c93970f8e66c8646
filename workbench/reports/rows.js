"use strict";
// Tables of rows are read without this: it adds a field to filter by and buttons to sort by.
for (const table of document.querySelectorAll("table.rows")) {
  const body = table.tBodies[0];
  const lines = [...body.rows];
  const keys = (line, place) => {
    const cell = line.cells[place];
    return cell.dataset.order === undefined ? cell.textContent.trim() : cell.dataset.order;
  };
  const plain = (text) => text.replace(/\s+/g, " ").trim().toLowerCase();
  const compare = (first, second) => {
    if (first === "" || second === "") return (first === "") - (second === "");
    const numbers = [Number(first), Number(second)];
    return numbers.some(Number.isNaN) ? first.localeCompare(second) : numbers[0] - numbers[1];
  };
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.replaceChildren(button);
    button.addEventListener("click", () => {
      const falls = header.getAttribute("aria-sort") === "ascending";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", falls ? "descending" : "ascending");
      lines.sort((one, other) => (falls ? -1 : 1) * compare(keys(one, place), keys(other, place)));
      body.append(...lines);
    });
  });
  const label = document.createElement("label");
  label.className = "filter";
  label.append("Show rows with (several between commas) ");
  const field = document.createElement("input");
  field.type = "search";
  label.append(field);
  const told = document.createElement("span");
  told.setAttribute("role", "status");
  label.append(told);
  field.addEventListener("input", () => {
    const wanted = field.value.split(",").map(plain).filter(Boolean);
    let shown = 0;
    for (const line of lines) {
      const text = [...line.cells].slice(0, -1).map((cell) => plain(cell.textContent)).join(" | ");
      line.hidden = !wanted.every((word) => text.includes(word));
      shown += line.hidden ? 0 : 1;
    }
    told.textContent = ` ${shown} of ${lines.length}`;
  });
  table.closest(".wide").before(label);
}
// What a link leads to may be folded, or lie in a folded section.
const unfold = () => {
  const place = location.hash.slice(1) && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  place.querySelectorAll("details").forEach((one) => (one.open = true));
  for (let outer = place.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
  place.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();
// Paper shows each section, and none of what is folded inside of it.
addEventListener("beforeprint", () => document.querySelectorAll("details.section").forEach((one) => (one.open = true)));
