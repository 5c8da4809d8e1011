// Of tabulator those parts alone that the table of points uses.
import { Tabulator, SortModule, FilterModule, FormatModule, ResizeColumnsModule, InteractionModule, EditModule } from 'tabulator-tables';

Tabulator.registerModule([SortModule, FilterModule, FormatModule, ResizeColumnsModule, InteractionModule, EditModule]);
export { Tabulator };
